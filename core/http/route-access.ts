import type { RequestRoute } from '@hapi/hapi'

/** The rules of a route as hapi keeps them, which its types do not show: `server.auth.lookup(route)`. */
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
}
