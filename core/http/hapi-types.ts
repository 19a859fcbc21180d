/** Additions to hapi's types: what they lack, and what the gateway stores in `request.plugins`. */
import type { RequestRoute } from '@hapi/hapi'

/** The rules of a route as hapi keeps them: `server.auth.lookup(route)`. */
export interface RouteAccess {
	strategies: string[]
	mode: string
	access?: { entity?: string; scope?: { selection?: string[]; required?: string[]; forbidden?: string[] } | false }[]
}

declare module '@hapi/hapi' {
	interface ServerAuth {
		/** The default if the route sets nothing; false if it accepts all callers. */
		lookup(route: RequestRoute): RouteAccess | false
	}
	interface PluginsStates {
		/** Called once the body has been read, before the route's handler. Throws to refuse the request. */
		afterBody?: () => Promise<void>
	}
}
