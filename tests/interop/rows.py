"""All rows of the matrix. Another row is another `Row` in one of the lists."""

from __future__ import annotations

from tests.interop.delivery_rows import delivery_rows, transaction_rows
from tests.interop.matrix import Row
from tests.interop.message_rows import destination_rows, header_rows, message_rows, property_rows, size_rows
from tests.interop.schema_rows import schema_rows
from tests.interop.subscription_rows import selector_rows, subscription_rows


def rows() -> list[Row]:
    """All rows, in the order of the table."""
    return [
        *message_rows(), *property_rows(), *header_rows(), *size_rows(), *destination_rows(),
        *schema_rows(), *subscription_rows(), *selector_rows(), *delivery_rows(), *transaction_rows(),
    ]  # fmt: skip
