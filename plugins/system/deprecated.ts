/** Tells callers that a route is deprecated. */
import type { Request, RequestRoute, Server } from '@hapi/hapi'

/** Sets the header `Deprecation` for routes that declare it. Without such a route, requests pay nothing. */
export function tellDeprecated(server: Server): void {
	let isTold = false
	server.events.on('route', (route: RequestRoute) => {
		if (isTold || route.settings.plugins?.openapi?.deprecated === undefined) return
		isTold = true
		// Before a route is asked: also for refused callers, and for answers that a route writes by itself.
		server.ext('onPreAuth', ({ route: { settings }, raw }: Request, h) => {
			const since = settings.plugins?.openapi?.deprecated
			if (since !== undefined) raw.res.setHeader('deprecation', `@${Date.parse(since) / 1000}`)
			return h.continue
		})
	})
}
