/** The Content-Security-Policy of a page: it loads only what is `allowed`, sends no form, and is shown in no frame. */
export function pagePolicy(...allowed: string[]): string {
	return ["default-src 'none'", ...allowed, "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"].join(
		'; ',
	)
}
