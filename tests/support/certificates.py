"""Certificates for tests, made by the command ``openssl``, which `.ci/run` installs where it is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make_authority(folder: Path, name: str) -> Path:
    """A certificate authority ``name.pem`` with its key ``name.key``; the path of the certificate."""
    files = ("-keyout", f"{name}.key", "-out", f"{name}.pem")
    _openssl(folder, "req", "-x509", *_KEY, "-days", "3650", "-subj", f"/CN={name}", *files)
    return folder / f"{name}.pem"


def make_certificate(folder: Path, authority: str, name: str, subject: str, days: int = 3650) -> Path:
    """A certificate ``name.pem`` with its key ``name.key``, signed by an authority of the folder.

    Args:
        folder: where all of them are.
        authority: the authority's name.
        name: of the files, and the role of who shows it.
        subject: whom it is for, as ``DNS:localhost,IP:127.0.0.1``.
        days: until it expires; a negative number: it has expired.
    """
    _openssl(folder, "req", *_KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    (folder / f"{name}.ext").write_text(f"subjectAltName={subject}\n", encoding="ascii")
    signer = ("-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", str(days))
    _openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signer, "-extfile", f"{name}.ext", "-out", f"{name}.pem")
    return folder / f"{name}.pem"


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)
