/**
 * The section `providers` of gateway.yaml with model servers of a test, by name. Each has the API key `sk-test` and the model
 * `NAME-model`. It ends with a newline, so lines with further providers can follow.
 */
export function providersAt(urls: Record<string, string>): string {
	const lines = Object.entries(urls).map(
		([name, url]) => `  ${name}: { kind: openai, base_url: '${url}', api_key: sk-test, model: ${name}-model }\n`,
	)
	return `providers:\n${lines.join('')}`
}
