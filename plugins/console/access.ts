/** What the module's `show` is given. */
export interface ConsoleAccess {
	/** JSON of a path of the API, such as `/v1/tides`, as the reader of the page. Throws an error with `status`, `code` and `message`. */
	get(path: string): Promise<unknown>
	/** The same for POST, PATCH, PUT and DELETE. */
	change(method: string, path: string, body?: unknown): Promise<unknown>
	/** Events from now on, as in GET /v1/events/stream, until the page is left; resumed where the stream breaks. `query`: its filters. */
	follow(query: Record<string, string>, heard: (event: Record<string, unknown>) => void): void
	/** Aborts when the page is left. */
	signal: AbortSignal
}
