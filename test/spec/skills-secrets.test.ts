/** A skill gets only the secrets that it declares, whatever handles its arguments contain. */
import t from 'tap'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { startGateway } from '../support/gateway.ts'
import { startModelServer } from '../support/model-server.ts'
import { providersAt } from '../support/providers.ts'
import { follow } from '../support/runs.ts'
import type { Followed } from '../support/runs.ts'
import { addSkill, programText } from '../support/skills.ts'

const model = await startModelServer()
const gateway = await startGateway({
	config: providersAt({ main: model.url }),
})
t.teardown(async () => {
	await gateway.stop()
	await model.stop()
})

/** Of different lengths, so that a program can report which value it got without showing it. */
const values = { DECLARED: 'the value of what is declared', OTHER: 'the value of something else' }
for (const [name, value] of Object.entries(values))
	await gateway.request('POST', '/v1/vault/secrets', { body: { name, value } })

const parameters = 'parameters: [{name: a, type: string}, {name: list, type: array}]\n'

/** Calls a skill in a run. Returns the final event of the call, and the tool result that the model got. */
async function callSkill(agent: Followed, tool: string, args: object): Promise<{ end: EventEnvelope; result: string }> {
	const prompt = `Call number ${model.requests().length} of ${tool}`
	model.on(prompt, { tools: [{ name: tool, arguments: args }] }, 'Done.')
	const run_id = await agent.complete(prompt)
	const end = agent.eventsOf(run_id).find(({ event_type }) => /^skill\.(completed|failed)$/.test(event_type))
	if (!end) throw new Error(agent.typesOf(run_id).join(' '))
	const last = model.requests(prompt).at(-1)
	return { end, result: String(last?.messages.findLast(({ role }) => role === 'tool')?.content) }
}

void t.test('handles of undeclared secrets are not replaced, and a note tells the model why', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	for (const secret_id of Object.keys(values))
		await gateway.request('POST', '/v1/vault/grants', { body: { agent_id: 'ada', secret_id } })
	const head = `${parameters}permissions: {secrets: [DECLARED]}`
	await addSkill(gateway, 'ada', programText('taker', 'return { a: args.a.length, list: args.list }', head))
	await addSkill(gateway, 'ada', programText('thrower', 'throw new Error(args.a)', parameters))

	const args = { a: '{{secret:DECLARED}}', list: ['{{secret:OTHER}}', { deep: 'x {{secret:OTHER}}' }] }
	const both = await callSkill(ada, 'skill_taker', args)
	const [json = '', note = ''] = both.result.split('\n\n')
	t.strictSame(JSON.parse(json), {
		a: values.DECLARED.length,
		list: ['{{secret:OTHER}}', { deep: 'x {{secret:OTHER}}' }],
	})
	t.match(note, /\{\{secret:OTHER\}\} unchanged.*does not declare.*permissions\.secrets/)
	t.notMatch(note, 'DECLARED')
	const denied = ada.stream.events.filter(({ event_type }) => event_type === 'vault.denied')
	t.match(
		denied.map(({ payload }) => payload),
		[{ secret: 'OTHER', via: 'skill:taker', reason: 'undeclared' }],
	)
	const accessed = ada.stream.events.filter(({ event_type }) => event_type === 'vault.accessed')
	t.match(
		accessed.map(({ payload }) => payload.secret),
		['DECLARED'],
	)

	const declared = await callSkill(ada, 'skill_taker', { a: '{{secret:DECLARED}}', list: [] })
	t.strictSame(JSON.parse(declared.result), { a: values.DECLARED.length, list: [] }, 'no note')

	const failed = await callSkill(ada, 'skill_thrower', { a: 'got {{secret:OTHER}}' })
	t.equal(failed.end.event_type, 'skill.failed')
	t.match(failed.end.payload, { code: 'skill_failed', message: /got \{\{secret:OTHER\}\}.*unchanged/s })
	t.match(failed.result, /does not declare/)
	t.notMatch(JSON.stringify([ada.stream.events, model.requests()]), /the value of/)
})

void t.test('without a grant a call with a declared secret fails, and an undeclared one is not replaced', async (t) => {
	const bea = await follow(t, gateway, 'bea')
	const head = `${parameters}permissions: {secrets: [DECLARED]}`
	await addSkill(gateway, 'bea', programText('taker', 'return args.a', head))
	const declared = await callSkill(bea, 'skill_taker', { a: '{{secret:DECLARED}}' })
	t.match(declared.end.payload, { code: 'vault_denied', message: /no grant for a secret "DECLARED"/ })
	const unknown = await callSkill(bea, 'skill_taker', { a: '{{secret:NONE}}' })
	t.match(
		unknown.end.payload.result,
		/^\{\{secret:NONE\}\}\n\n\[Note.*does not declare/,
		'the note does not reveal whether the secret exists',
	)
})
