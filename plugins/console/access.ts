/** The second argument of a module's `show`. */
export interface ConsoleAccess {
	/**
	 * Requests JSON from a path of the API, such as `/v1/tides`, as the reader of the page. Throws an error with `status`, `code` and
	 * `message`.
	 */
	get(path: string): Promise<unknown>
	/** As `get`, for POST, PATCH, PUT and DELETE. */
	change(method: string, path: string, body?: unknown): Promise<unknown>
	/**
	 * Follows events from now on until the page is left, and resumes an interrupted stream. `query`: the filters of
	 * GET /v1/events/stream.
	 */
	follow(query: Record<string, string>, onEvent: (event: Record<string, unknown>) => void): void
	/** Aborts when the page is left. */
	signal: AbortSignal
}
