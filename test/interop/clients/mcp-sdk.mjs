import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { featuresOf } from './mcp-features.mjs'

async function open({ url, token }, answer) {
	const capabilities = answer ? { elicitation: { form: {} } } : {}
	const client = new Client({ name: 'interop', version: '1' }, { capabilities })
	if (answer) client.setRequestHandler(ElicitRequestSchema, () => answer)
	const requestInit = { headers: { authorization: `Bearer ${token}` } }
	await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
	return client
}

export const name = '@modelcontextprotocol/sdk'
export const features = featuresOf(open)
