"""Exceptions of the package."""


class UnderstudyError(Exception):
    """Base of this package's own exceptions."""


class SdkError(UnderstudyError):
    """The SDK trees, or something in them, cannot be found or loaded."""


class UsageError(UnderstudyError):
    """The command line was used wrongly: printed as one line, exit status 2."""


class StatusError(UnderstudyError):
    """A library refused a call.

    name: the status as the headers spell it ("MCDNN_STATUS_BAD_PARAM"), or the number when they have no name for it
    code: the status as a number
    rule: "function/parameter/rule"; "" when the library is not an Understudy library
    text: the sentence with the offending values; "" likewise
    """

    def __init__(self, function: str, name: str, code: int, rule: str, text: str):
        self.function, self.name, self.code, self.rule, self.text = function, name, code, rule, text
        super().__init__(function, name, code, rule, text)  # with what pickle makes it again
        status = name if name == str(code) else f"{name} ({code})"
        self._sentence = f"{function}: {status}" + (f": {text} [{rule}]" if text else "")

    def __str__(self) -> str:
        return self._sentence
