import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { exitCodes } from '../../../core/cli/contract.ts'
import { addToken } from '../../support/add.ts'
import { svcFor } from '../../support/cli.ts'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)

void t.test('agents: create, show, update, list, reset, delete', async (t) => {
	writeFileSync(join(gateway.home, 'persona.md'), 'You are\npatient.\n')
	const set = ['--set', 'temperature=0.5', 'limits.steps=20', 'limits.tokens=900', 'motto=be = kind']
	const made = await svc(['agents', 'create', 'ada', '--persona-file', 'persona.md', ...set, '--json'])
	t.equal(made.code, 0)
	const config = { temperature: 0.5, limits: { steps: 20, tokens: 900 }, motto: 'be = kind' }
	t.match(made.json(), { name: 'ada', persona: 'You are\npatient.', config })
	const changed = await svc(['agents', 'update', 'ada', '--persona', '-x', '--set', 'motto=', '--json'])
	t.strictSame(changed.json().config, { temperature: 0.5, limits: config.limits })
	t.equal((await gateway.request('GET', '/v1/agents/ada')).body.persona, '-x')
	t.match(
		(await svc(['agents', 'show', 'ada'])).stdout,
		/persona: +-x\ntemperature: 0\.5\nlimits: +\{"steps":20,"tokens":900\}/,
	)
	t.match((await svc(['agents', 'list'])).stdout, /^AGENT +CREATED\nada +\d{4}-/)
	t.equal((await svc(['agents', 'update', 'ada'])).code, exitCodes.usage)
	t.equal((await svc(['agents', 'update', 'ada', '--set', 'motto'])).code, exitCodes.usage)
	t.equal((await svc(['agents', 'reset', 'ada'])).code, 0)
	const unsure = await svc(['agents', 'delete', 'ada'])
	t.equal(unsure.code, exitCodes.usage)
	t.match(unsure.stderr, '--yes')
	t.equal((await svc(['agents', 'delete', 'ada', '--yes'])).code, 0)
	t.equal((await gateway.request('GET', '/v1/agents/ada')).status, 404)
	t.match((await svc(['agents'])).stdout, 'Create one: svc agents create')
})

void t.test('keys and values of an agent cannot forge a line of the output', async (t) => {
	const forged = 'x\ntools:  none'
	const config = { [forged]: 'a key', motto: ['one', forged], ['long'.repeat(100)]: 'cut' }
	const made = await gateway.request('POST', '/v1/agents', { body: { name: 'eve', persona: forged, config } })
	t.equal(made.status, 201)
	const { stdout } = await svc(['agents', 'show', 'eve'])
	t.notMatch(stdout, /^tools:/m)
	t.match(stdout, 'x\\ntools:  none:')
	t.ok(stdout.split('\n').every((line) => line.length < 200))
})

void t.test('runs: list in pages, show, cancel', async (t) => {
	const ada = await follow(t, gateway, 'bea')
	const ids: string[] = []
	for (let n = 0; n < 5; n++) ids.unshift(await ada.complete(`prompt ${n}`))
	const listed = await svc(['runs', 'list', 'bea', '--limit', '4', '--json'])
	t.strictSame(
		listed.json().map((run: { run_id: string }) => run.run_id),
		ids.slice(0, 4),
	)
	t.match((await svc(['runs', 'list', 'bea', '--status', 'failed'])).stdout, 'No run is failed.')
	t.equal((await svc(['runs', 'list', 'bea', '--status', 'odd'])).code, exitCodes.usage)
	const [last = ''] = ids
	t.match(
		(await svc(['runs', 'show', last])).stdout,
		/status: +completed\n[^]*prompt: +prompt 4\nanswer: +The built-in/,
	)
	t.equal((await svc(['runs', 'cancel', last])).code, exitCodes.conflict)
	const paused = await ada.start('/tool ask {"question":"Shall I?"}')
	await ada.waitFor(paused, 'run.paused')
	t.match((await svc(['runs', 'show', paused])).stdout, /asks: +Shall I\? \(svc questions answer bea \w+ …\)/)
	const status = await svc(['status'])
	t.equal(status.code, 0)
	t.match(status.stdout, /^ok · http:\/\/127[^]*AGENT[^]*\nbea +0 +0 +1 +1\n/)
	t.match(status.stdout, 'svc questions list')
	t.equal((await svc(['runs', 'cancel', paused])).code, 0)
	t.equal((await ada.read(paused)).status, 'stopped')
	for (const odd of ['nothing', '0']) {
		const unknown = await svc(['runs', 'show', odd])
		t.equal(unknown.code, exitCodes.not_found)
		t.match(unknown.stderr, `"${odd}" is not the id of a run; give at least 4 characters of one`)
	}
})

void t.test('status names the scopes that its token lacks', async (t) => {
	const made = await addToken(gateway, ['runs:write'])
	const { code, stdout } = await svcFor({ ...gateway, token: made.token })(['status'])
	t.equal(code, 0)
	t.match(stdout, 'does not permit agents:read')
})

void t.test('events tail: filters, a count, and resuming at a position', async (t) => {
	const cid = await follow(t, gateway, 'cid')
	await follow(t, gateway, 'dan').then((dan) => dan.complete('other'))
	const open = Promise.withResolvers<void>()
	const args = ['events', 'tail', '--agent', 'cid', '--type', 'run.*,message.user']
	const tail = svc([...args, '--count', '3'], { onOutput: (text) => text.includes('following') && open.resolve() })
	await open.promise
	await cid.complete('mine')
	const { code, stdout } = await tail
	t.equal(code, 0)
	t.match(
		stdout,
		/^[\d:.]+ run\.started cid [^\n]+\n[\d:.]+ message\.user cid [^\n]+"mine"\}\n[\d:.]+ run\.completed cid [^\n]+\n$/,
	)

	const [, second = ''] = cid.stream.ids
	const rest = await svc(['events', 'tail', '--agent', 'cid', '--since', second, '--count', '2', '--json', '--cursors'])
	const lines = rest.stdout
		.trim()
		.split('\n')
		.map((line) => JSON.parse(line))
	t.strictSame(
		lines.map(({ cursor, event }) => [cursor, event.event_id]),
		[2, 3].map((n) => [cid.stream.ids[n], cid.stream.events[n]?.event_id]),
	)
	t.equal((await svc(['events', 'tail', '--since', 'nonsense'])).code, exitCodes.usage)

	const interrupt = new AbortController()
	const again = Promise.withResolvers<void>()
	const endless = svc(args, { signal: interrupt.signal, onOutput: () => again.resolve() })
	await again.promise
	interrupt.abort()
	t.equal((await endless).code, exitCodes.interrupted)
})

void t.test('audit: filters, times and pages', async (t) => {
	const eve = await follow(t, gateway, 'eve')
	for (let n = 0; n < 3; n++) await eve.complete(`prompt ${n}`)
	const all = await svc(['audit', '--agent', 'eve', '--all', '--json'])
	const ids = all.stdout
		.trim()
		.split('\n')
		.map((line) => JSON.parse(line).event_id)
	const kept = eve.stream.events.filter((event) => event.event_type !== 'model.stream').map((event) => event.event_id)
	t.strictSame(ids.slice(0, kept.length), kept.toReversed(), 'all events, newest first')
	const some = await svc(['audit', '--agent', 'eve', '--limit', '2', '--type', 'message.user'])
	t.match(some.stdout, /"prompt 2"\}\n[^\n]+"prompt 1"\}\n$/)
	const cursor = /--cursor (\S+)\)/.exec(some.stderr)?.[1] ?? ''
	const older = await svc(['audit', '--agent', 'eve', '--type', 'message.user', '--cursor', cursor])
	t.match(older.stdout, /^[^\n]+"prompt 0"\}\n$/)
	t.equal((await svc(['audit', '--agent', 'eve', '--since', '1h'])).stdout.split('\n').length - 1, ids.length)
	t.equal((await svc(['audit', '--agent', 'eve', '--until', '1h'])).stdout, '')
	const unclear = await svc(['audit', '--since', 'yesterday'])
	t.equal(unclear.code, exitCodes.usage)
	t.match(unclear.stderr, /"yesterday" is not a time; write .* how long ago: 30m, 12h, 7d/)
	const none = await svc(['audit', '--agent', 'nobody'])
	t.strictSame([none.code, none.stdout], [0, ''])
	t.match(none.stderr, '(no such events)')
	t.match((await svc(['audit', '--agent', 'eve', '--limit', '1'])).stdout, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} /)
	t.equal((await svc(['audit', '--since', '999999999d'])).code, exitCodes.usage, 'out of range')
})

void t.test('completion: commands, options, choices and names of agents', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'zoe' } })
	const complete = async (...words: string[]): Promise<string[]> =>
		(await svc(['completion', 'words', '--', ...words])).stdout.split('\n').slice(0, -1)
	t.strictSame(await complete('ag'), ['agents'])
	t.strictSame(await complete('agents', 'cr'), ['create'])
	t.strictSame(await complete('agents', 'create', '--persona'), ['--persona', '--persona-file'])
	t.strictSame(await complete('run', 'z'), ['zoe'])
	t.strictSame(
		await complete('--json', 'runs', 'list', '--status', 'failed', 'z'),
		['zoe'],
		'values of options are not arguments',
	)
	t.strictSame(await complete('run', 'zoe', ''), [])
	t.ok((await complete('runs', 'list', '--')).includes('--json'), 'options for all commands')
	t.strictSame(await complete('nothing', ''), [])
	const alone = await svcFor({ home: gateway.home, url: 'http://127.0.0.1:6000' })([
		'completion',
		'words',
		'--',
		'run',
		'',
	])
	t.strictSame([alone.code, alone.stdout, alone.stderr], [0, '', ''], 'without a gateway there are no names')
})
