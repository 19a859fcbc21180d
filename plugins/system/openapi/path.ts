/** hapi's path in OpenAPI's syntax: `{rest*}` and `{id?}` lose their marks. */
export function templateOf(path: string): string {
	return path.replaceAll(/\{(\w+)(\*\d*|\?)\}/g, '{$1}')
}
