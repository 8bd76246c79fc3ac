// OperatorApp
