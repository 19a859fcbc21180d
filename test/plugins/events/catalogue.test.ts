import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { declaredBy } from '../../../core/host/declared.ts'
import { builtInPlugins } from '../../../docs/make/plugins.ts'
import { builtInTypes, differences } from '../../support/documented.ts'
import { startGateway } from '../../support/gateway.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** As the specification lists them. */
const specified = `
	run.started run.completed run.failed
	message.user message.assistant message.system
	model.request model.response model.stream
	skill.invoked skill.completed primitive.called primitive.result
	memory.stored memory.recalled
	vault.accessed vault.denied
	heartbeat.fired heartbeat.created
	subagent.spawned subagent.completed
	security.violation security.redacted
	channel.message_received channel.message_sent`

/** Code that may emit events, by its path from the root. */
const sources = new Map(
	globSync('{core,plugins,sandbox}/**/*.ts', { cwd: root }).map((path) => [
		path.replaceAll('\\', '/'),
		readFileSync(join(root, path), 'utf8'),
	]),
)

void t.test('every specified type is declared', async (t) => {
	t.strictSame(
		specified.split(/\s+/).filter((type) => type !== '' && !builtInTypes.has(type)),
		[],
	)
})

void t.test('every emitted type is declared', async (t) => {
	const emitted = [...sources].flatMap(([path, code]) =>
		Array.from(code.matchAll(/\bevent_type: '([a-z_]+\.[a-z_]+)'/g), ([, type = '']) => ({ path, type })),
	)
	t.ok(emitted.length > 50, `${emitted.length} events`)
	const undeclared = emitted.filter(({ type }) => !builtInTypes.has(type))
	t.strictSame(undeclared, [], 'declare these in events.ts of their plugin')
})

void t.test('every declared type is emitted', async (t) => {
	const code = [...sources].filter(([path]) => !path.endsWith('/events.ts')).map(([, text]) => text)
	const unused = [...builtInTypes.keys()].filter((type) => !code.some((text) => text.includes(`'${type}'`)))
	t.strictSame(unused, [], 'nothing emits these types of events.ts')
})

void t.test('the definition of a plugin contains the types of its events.ts', async (t) => {
	const { events } = declaredBy(await builtInPlugins())
	t.strictSame([...events.keys()].toSorted(), [...builtInTypes.keys()].toSorted())
})

void t.test('each type is described in one sentence', async (t) => {
	const sentences = [...builtInTypes].map(([type, { description }]) => {
		t.match(description, /^[A-Z][^\n]{10,120}\.$/, type)
		return description
	})
	t.equal(new Set(sentences).size, sentences.length)
})

void t.test('each field of a payload is described in one sentence', async (t) => {
	for (const [type, { payload }] of builtInTypes)
		for (const [field, description] of Object.entries(payload)) {
			t.match(field, /^[a-z_]+\??$/, `${type} ${field}`)
			t.match(description, /^[A-Z`][^\n|]{3,170}\.$/, `${type} ${field}`)
		}
})

void t.test('differences from the declaration are found', async (t) => {
	t.strictSame(differences({ event_type: 'run.stopped', payload: {} }), [])
	t.strictSame(differences({ event_type: 'clock.ticked', payload: { of: 'a plugin' } }), [])
	const clock = new Map([['clock.ticked', { description: 'It ticked.', payload: { at: 'When.' } }]])
	t.match(differences({ event_type: 'clock.ticked', payload: { of: 1 } }, clock), [/the field "of"/, /no "at"/])
	t.match(differences({ event_type: 'run.vanished', payload: {} }), [/run\.vanished is not declared/])
	t.match(differences({ event_type: 'run.queued', payload: { conversation: 'c', place: 2 } }), [/the field "place"/])
	t.match(differences({ event_type: 'run.queued', payload: {} }), [/has no "conversation"/])
})

void t.test('the events of a start are as declared', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const { body } = await gateway.request('GET', '/v1/audit?limit=500')
	t.ok(body.events.some(({ event_type }: EventEnvelope) => event_type === 'gateway.started'))
	for (const event of body.events) t.strictSame(differences(event), [])
})
