"""The lines of the checklist that have no test here, each with the reason."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """The only reasons to leave a line of the checklist out."""

    JAVA_SERIALISATION = "Java serialisation"
    JAVA_CLASS_LOADING = "Java class loading"
    RUNTIME_TWIN = "checked against runtime twin (the other one is tested)"
    API_ABSENT = "API deliberately absent"


#: Line of the checklist: the reason, and for an absent API its name, for a twin the line that is tested.
EXCLUDED: dict[str, tuple[Reason, str]] = {
    "core/exceptionQueue/ExceptionQueueTestsIT.xIllegalStateExceptionTestTopicMethodsQ": (
        Reason.API_ABSENT,
        "QueueSession",
    ),
    "core/exceptionTopic/ExceptionTopicTestsIT.xIllegalStateExceptionTestQueueMethodsT": (
        Reason.API_ABSENT,
        "TopicSession",
    ),
    "core20/sessiontests/ClientIT.illegalStateExceptionTests": (Reason.API_ABSENT, "QueueSession"),
}
