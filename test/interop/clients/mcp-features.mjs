import { equal } from '../expected.mjs'

/** `open(at, answer)` connects a client. `answer`: its answer to questions of the server, if it accepts any. */
export function featuresOf(open) {
	return {
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
			const client = await open(at, { action: 'accept', content: { answer: 'red' } })
			const args = { agent: at.agent, prompt: 'ask me which one' }
			const result = await client.callTool({ name: 'run_agent', arguments: args })
			equal(result.structuredContent.answer, 'You said red.')
			await client.close()
		},
	}
}
