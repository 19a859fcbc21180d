import { once } from '../shared/once.ts'

/** What uses the SDK of MCP, loaded when it is first needed. */
export const loadSdk = once(() => import('./session.ts'))
