/** A skill is given the secrets that it declares, and no others, whatever stands in its arguments. */
import t from 'tap'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { startGateway } from '../support/gateway.ts'
import { startModelServer } from '../support/model-server.ts'
import { follow } from '../support/runs.ts'
import { addSkill, programText } from '../support/skills.ts'

const model = await startModelServer()
const gateway = await startGateway({
	config: `providers:\n  main: {kind: openai, base_url: '${model.url}', api_key: sk-test, model: some-model}\n`,
})
t.teardown(async () => {
	await gateway.stop()
	await model.stop()
})

/** Longer by its name, so that a program can tell what it got without showing it. */
const values = { DECLARED: 'the value of what is declared', OTHER: 'the value of something else' }
for (const [name, value] of Object.entries(values))
	await gateway.request('POST', '/v1/vault/secrets', { body: { name, value } })

const parameters = 'parameters: [{name: a, type: string}, {name: list, type: array}]\n'

void t.test('handles of other secrets stay as they are, and a note tells the model why', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	for (const secret_id of Object.keys(values))
		await gateway.request('POST', '/v1/vault/grants', { body: { agent_id: 'ada', secret_id } })
	const head = `${parameters}permissions: {secrets: [DECLARED]}`
	await addSkill(gateway, 'ada', programText('taker', 'return { a: args.a.length, list: args.list }', head))
	await addSkill(gateway, 'ada', programText('thrower', 'throw new Error(args.a)', parameters))
	const resultOf = async (tool: string, args: object): Promise<{ end: EventEnvelope; told: string }> => {
		const prompt = `Call number ${model.requests().length} of ${tool}`
		model.on(prompt, { tools: [{ name: tool, arguments: args }] }, 'Done.')
		const run_id = await ada.complete(prompt)
		const end = ada.eventsOf(run_id).find(({ event_type }) => /^skill\.(completed|failed)$/.test(event_type))
		if (!end) throw new Error(ada.typesOf(run_id).join(' '))
		const told = model
			.requests(prompt)
			.at(-1)
			?.messages.findLast(({ role }) => role === 'tool')?.content
		return { end, told: String(told) }
	}

	const both = { a: '{{secret:DECLARED}}', list: ['{{secret:OTHER}}', { deep: 'x {{secret:OTHER}}' }] }
	const { told } = await resultOf('skill_taker', both)
	const [result = '', note = ''] = told.split('\n\n')
	t.strictSame(JSON.parse(result), {
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

	const plain = await resultOf('skill_taker', { a: '{{secret:DECLARED}}', list: [] })
	t.strictSame(JSON.parse(plain.told), { a: values.DECLARED.length, list: [] }, 'no note without need')

	const failed = await resultOf('skill_thrower', { a: 'got {{secret:OTHER}}' })
	t.equal(failed.end.event_type, 'skill.failed')
	t.match(failed.end.payload, { code: 'skill_failed', message: /got \{\{secret:OTHER\}\}.*unchanged/s })
	t.match(failed.told, /does not declare/)
	t.notMatch(JSON.stringify([ada.stream.events, model.requests()]), /the value of/)
})

void t.test('a secret of which the agent has no grant', async (t) => {
	const bea = await follow(t, gateway, 'bea')
	const head = `${parameters}permissions: {secrets: [DECLARED]}`
	await addSkill(gateway, 'bea', programText('taker', 'return args.a', head))
	const end = async (prompt: string, a: string): Promise<EventEnvelope> => {
		model.on(prompt, { tools: [{ name: 'skill_taker', arguments: { a } }] }, 'Done.')
		const run_id = await bea.complete(prompt)
		return bea.stream.waitFor(
			(event) => event.run_id === run_id && /^skill\.(completed|failed)$/.test(event.event_type),
		)
	}
	const declared = await end('Take the declared one', '{{secret:DECLARED}}')
	t.match(declared.payload, { code: 'vault_denied', message: /no grant for a secret "DECLARED"/ })
	const other = await end('Take the other one', '{{secret:NONE}}')
	t.match(
		other.payload.result,
		/^\{\{secret:NONE\}\}\n\n\[Note.*does not declare/,
		'a name that does not exist tells nothing',
	)
})
