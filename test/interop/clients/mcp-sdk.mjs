import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { equal } from '../expected.mjs'

async function open({ url, token }, capabilities = {}) {
	const client = new Client({ name: 'interop', version: '1' }, { capabilities })
	const requestInit = { headers: { authorization: `Bearer ${token}` } }
	await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
	return client
}

export const name = '@modelcontextprotocol/sdk'
export const features = {
	async tools(at) {
		const client = await open(at)
		await client.listTools()
		const result = await client.callTool({ name: 'run_agent', arguments: { agent: at.agent, prompt: 'say hello' } })
		equal(result.structuredContent.answer, 'Hello!')
		await client.close()
	},
	async resources(at) {
		const client = await open(at)
		const { contents } = await client.readResource({ uri: `svc://agents/${at.agent}/history` })
		equal(Array.isArray(JSON.parse(contents[0].text)), true)
		await client.close()
	},
	async questions(at) {
		const client = await open(at, { elicitation: { form: {} } })
		client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { answer: 'red' } }))
		const args = { agent: at.agent, prompt: 'ask me which one' }
		const result = await client.callTool({ name: 'run_agent', arguments: args })
		equal(result.structuredContent.answer, 'You said red.')
		await client.close()
	},
}
