/** One run that uses all capabilities of an agent, with exactly the events that it emits. */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startGateway } from '../support/gateway.ts'
import type { Answer } from '../support/gateway.ts'
import { add } from '../support/mcp.ts'
import { startModelServer } from '../support/model-server.ts'
import { providersAt } from '../support/providers.ts'
import { follow } from '../support/runs.ts'

const everythingServer = fileURLToPath(
	new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
)

const program = `---
name: add up
description: Adds two numbers. Use it for sums.
runtime: javascript
parameters:
  - { name: a, type: number, required: true, description: The first. }
  - { name: b, type: number, required: true, description: The second. }
---
\`\`\`js
export default async ({ a, b }) => a + b
\`\`\`
`
const instructions = `---
name: greeting
description: How to greet people here.
---
Say hello in the language of the person.
`

const model = await startModelServer()
const gateway = await startGateway({
	config: providersAt({ main: model.url }),
})
t.teardown(async () => {
	await gateway.stop()
	await model.stop()
})

void t.test('a run that calls skills, memory, the vault, an MCP server and a sub-agent', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const post = async (path: string, body: object): Promise<Answer> => {
		const reply = await gateway.request('POST', path, { body })
		t.equal(reply.status, path.endsWith('/approve') ? 200 : 201, `${path}: ${JSON.stringify(reply.body)}`)
		return reply.body
	}
	for (const content of [program, instructions]) {
		const { id, status } = await post('/v1/agents/ada/skills/install', { content })
		t.equal(status, 'quarantined')
		const { digest } = (await ada.call(`skills/${id}`)).body
		await post(`/v1/agents/ada/skills/${id}/approve`, { digest })
	}
	const open = await post('/v1/vault/secrets', { name: 'OPEN', value: 'the value that ada may read' })
	await post('/v1/vault/secrets', { name: 'CLOSED', value: 'the value that no agent may read' })
	await post('/v1/vault/grants', { agent_id: 'ada', secret_id: open.id })
	const server = await add(ada, {
		name: 'every',
		transport: 'stdio',
		command: process.execPath,
		args: [everythingServer, 'stdio'],
	})
	t.equal(server.status, 'connected')

	const calls: [name: string, args: object][] = [
		['skill_add-up', { a: 19, b: 23 }],
		['skill_greeting', {}],
		['memory_store', { content: 'The office cat is called Biscotto.', tags: ['office'] }],
		['memory_recall', { query: 'What is the name of the cat in the office?' }],
		['vault_read', { name: 'OPEN' }],
		['vault_read', { name: 'CLOSED' }],
		['mcp__every__echo', { message: 'ciao' }],
		['subagent_spawn', { prompt: 'count the chairs' }],
	]
	model.on('use everything', ...calls.map(([name, args]) => ({ tools: [{ name, arguments: args }] })), 'All done.')
	model.on('count the chairs', 'There are four.')

	const run_id = await ada.complete('Please use everything.')
	const modelCall = ['model.request', 'model.response']
	t.strictSame(ada.typesOf(run_id), [
		'run.started',
		'message.user',
		...modelCall,
		'skill.invoked',
		'skill.completed',
		...modelCall,
		'skill.invoked',
		'skill.completed',
		...modelCall,
		'primitive.called',
		'memory.stored',
		'primitive.result',
		...modelCall,
		'primitive.called',
		'memory.recalled',
		'primitive.result',
		...modelCall,
		'primitive.called',
		'vault.accessed',
		'primitive.result',
		...modelCall,
		'primitive.called',
		'vault.denied',
		'primitive.failed',
		...modelCall,
		'mcp.called',
		'mcp.result',
		...modelCall,
		'primitive.called',
		'subagent.spawned',
		'run.paused',
		'run.resumed',
		'subagent.completed',
		'primitive.result',
		...modelCall,
		'message.assistant',
		'run.completed',
	])
	const sequences = ada.eventsOf(run_id).map((event) => event.sequence)
	t.strictSame(
		sequences,
		sequences.toSorted((a, b) => a - b),
	)

	const results = (model.requests('use everything').at(-1)?.messages ?? [])
		.filter((message) => message.role === 'tool')
		.map((message) => String(message.content))
	t.equal(results.length, calls.length)
	t.match(results[0], /42/)
	t.match(results[1], /language of the person/)
	t.match(results[3], /Biscotto/)
	t.match(results[4], /\{\{secret:OPEN\}\}/)
	t.match(results[5], /vault_denied/)
	t.match(results[6], /ciao/)
	t.match(results[7], /There are four/)
	t.notMatch(JSON.stringify(model.requests()), /the value that/)

	const { payload } = await ada.waitFor(run_id, 'skill.invoked')
	t.equal(payload.skill, 'add up')
	const spawned = await ada.waitFor(run_id, 'subagent.spawned')
	t.match(await ada.read(String(spawned.payload.run_id)), { status: 'completed', trigger: 'subagent' })
})
