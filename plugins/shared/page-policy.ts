/** The Content-Security-Policy of a page: it loads only what the directives in `allowed` permit, and forms and framing are blocked. */
export function pagePolicy(...allowed: string[]): string {
	return ["default-src 'none'", ...allowed, "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"].join(
		'; ',
	)
}
