// SafeHTML
