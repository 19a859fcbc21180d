import { once } from '../shared/once.ts'

/** The session module, which loads the MCP SDK; loaded on first use. */
export const loadSdk = once(() => import('./session.ts'))
