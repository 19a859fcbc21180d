import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { featuresOf } from './mcp-features.mjs'

async function open({ url, token }, answer) {
	const capabilities = answer ? { elicitation: { form: {} } } : {}
	// Offers revision 2026-07-28 first.
	const versionNegotiation = { mode: 'auto' }
	const client = new Client({ name: 'interop', version: '1' }, { capabilities, versionNegotiation })
	if (answer) client.setRequestHandler('elicitation/create', () => answer)
	const requestInit = { headers: { authorization: `Bearer ${token}` } }
	await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
	return client
}

export const name = '@modelcontextprotocol/client'
export const features = featuresOf(open)
