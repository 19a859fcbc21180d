/** The gateway's own addresses in a login. */
import type { GatewayStatus } from '../../../core/status.ts'

export const CALLBACK = '/v1/mcp/callback'
export const CLIENT_DOCUMENT = '/.well-known/svc-mcp-client.json'

type Reached = Pick<GatewayStatus, 'publicUrl'>

/** Where an authorization server sends a browser after a login: below `server.public_url`, else at this machine. */
export function redirectAddress(gateway: Reached): string {
	return `${base(gateway)}${CALLBACK}`
}

/** The address of our client ID metadata document, which is the client's id; null without a public address over https. */
export function clientDocument(gateway: Reached): string | null {
	const at = base(gateway)
	return at.startsWith('https://') ? `${at}${CLIENT_DOCUMENT}` : null
}

function base(gateway: Reached): string {
	return (gateway.publicUrl() ?? 'http://127.0.0.1').replace(/\/+$/, '')
}
