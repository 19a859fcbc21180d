/** The example of a plugin: copied into a home and switched on in a running gateway, with a test of each part. */
import { cpSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { examined } from '../core/cli/doctor/healthy-home.ts'
import { addToken } from '../support/add.ts'
import { svcFor } from '../support/cli.ts'
import { startGateway } from '../support/gateway.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const source = fileURLToPath(new URL('../../skills-examples/notes/', import.meta.url))

void t.test('settings, tools, routes, scopes, errors, events, commands, checks and metrics', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const { home, url, request } = gateway
	const svc = svcFor({ home, url })
	cpSync(source, join(home, 'plugins/notes'), { recursive: true })
	t.equal((await svc(['plugins', 'check', 'notes', '--json'])).json().findings.length, 0)

	// Its settings. An error states the path of the setting.
	const wrong = await svc(['config', 'set', 'plugins.notes', '{max_per_agent: none}'])
	t.equal(wrong.code, 78)
	t.match(wrong.stderr, 'plugins.notes.max_per_agent')
	t.equal((await svc(['config', 'set', 'plugins.notes', '{max_per_agent: 2}'])).code, 0)
	await gateway.running.gateway.reload()

	// Its tool, its event and its error code.
	await svc(['agents', 'create', 'ada'])
	const stream = await openStream(url, {})
	t.teardown(() => stream.close())
	const add = (text: string): Promise<unknown> => svc(['run', 'ada', `/tool notes.add ${JSON.stringify({ text })}`])
	await add('Water the plants.')
	const added = await stream.waitFor((event) => event.event_type === 'notes.added')
	t.match(added, { agent_id: 'ada', payload: { length: 17 } })
	await add('Feed the cat.')
	await add('Sleep.')
	const failed = await stream.waitFor((event) => event.event_type === 'primitive.failed')
	t.match(failed.payload, { code: 'notes_full', message: /delete one first/ })

	// Its routes.
	const listed = await request('GET', '/v1/notes')
	t.match(listed.body, [{ agent: 'ada', text: 'Water the plants.' }, { text: 'Feed the cat.' }])
	const [{ note_id }] = listed.body
	t.equal((await request('DELETE', '/v1/notes/nothing')).status, 404)
	t.ok((await request('GET', '/v1/openapi.json')).body.paths['/v1/notes'])

	// Its metric, and its check.
	t.match((await request('GET', '/metrics')).body, '\nnotes_kept{agent="ada"} 2\n')
	// Not with `svc doctor`: its time limit for processes of checks is too short on a busy machine.
	const { checks } = await examined(home, ['notes.full'])
	t.match(checks, [{ id: 'notes.full', level: 'warning', message: 'agent ada has 2 notes of 2' }])

	// Its commands.
	t.match((await svc(['--help'])).stdout, 'List and delete the notes of agents')
	t.match((await svc(['notes'])).stdout, 'Water the plants.')
	t.equal((await svc(['notes', 'delete', note_id])).code, 0)
	t.match(await stream.waitFor((event) => event.event_type === 'notes.deleted'), {
		payload: { note_id, reason: 'request' },
	})
	t.equal((await svc(['notes', 'list', '--json'])).json().length, 1)

	// Deleting an agent deletes its notes.
	await request('DELETE', '/v1/agents/ada')
	await stream.waitFor((event) => event.event_type === 'agent.deleted')
	// The plugin gets the event at the same time as the stream.
	await eventually(async () => (await request('GET', '/v1/notes')).body.length === 0)

	// Its scopes.
	const { token: reader } = await addToken(gateway, ['notes:read'])
	const { token: other } = await addToken(gateway, ['agents:read'])
	await addToken(gateway, ['*'])
	const switched = await svc(['config', 'set', 'auth_mode', 'token'])
	t.equal(switched.code, 0, switched.stderr)
	const statusOf = async (method: string, path: string, token: string): Promise<number> =>
		(await request(method, path, { token })).status
	t.equal(await statusOf('GET', '/v1/notes', reader), 200)
	t.equal(await statusOf('GET', '/v1/notes', other), 403)
	t.equal(await statusOf('DELETE', '/v1/notes/nothing', reader), 403)
})

void t.test('the example is one folder with these files', (t) => {
	t.strictSame(readdirSync(source).toSorted(), [
		'README.md',
		'cli.ts',
		'doctor.ts',
		'events.ts',
		'index.ts',
		'notes.ts',
		'routes.ts',
		'settings.ts',
	])
	t.end()
})
