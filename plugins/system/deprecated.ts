import type { Request, RequestRoute, Server } from '@hapi/hapi'

/** Sets the header `Deprecation` for deprecated routes. Adds no work per request unless there is such a route. */
export function markDeprecated(server: Server): void {
	let isAdded = false
	server.events.on('route', (route: RequestRoute) => {
		if (isAdded || route.settings.plugins?.openapi?.deprecated === undefined) return
		isAdded = true
		// Before authentication and the handler, for refused callers and for responses that a route writes itself.
		server.ext('onPreAuth', ({ route: { settings }, raw }: Request, h) => {
			const since = settings.plugins?.openapi?.deprecated
			if (since !== undefined) raw.res.setHeader('deprecation', `@${Date.parse(since) / 1000}`)
			return h.continue
		})
	})
}
