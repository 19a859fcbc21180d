/** What hapi has and its types lack, and what is kept with a request in hapi's own place for that. */
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
		/** Called once the body is there, before the route does anything. It throws to refuse the request. */
		afterBody?: () => Promise<void>
	}
}
