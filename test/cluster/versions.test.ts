/**
 * Gateways of two neighbouring minor versions on one cluster. The newer one is a copy of this program with a newer format, in which
 * the record of each agent has an additional field. The older program never stores that.
 */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { decodeValue } from '../../core/store/codec.ts'
import { format } from '../../core/store/format.ts'
import { joinKey } from '../../core/store/keys.ts'
import { openClient } from '../../plugins/cluster/nats/client.ts'
import { answerDiscovery } from '../../plugins/cluster/nats/discovery.ts'
import { namesOf, token as subjectToken } from '../../plugins/cluster/nats/streams.ts'
import { svcFor } from '../support/cli.ts'
import { openMembers, roleOf } from '../support/cluster-processes.ts'
import type { MemberProcess } from '../support/cluster-processes.ts'
import { testFolder } from '../support/folder.ts'
import { send } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { startNats, withoutNats } from '../support/nats.ts'
import type { GatewayProcess } from '../support/process.ts'
import { providersAt } from '../support/providers.ts'
import { eventually } from '../support/wait.ts'

const root = join(import.meta.dirname, '../..')
const newer = format + 1

void t.test('two versions on one cluster', { skip: withoutNats(), timeout: 240_000 }, async (t) => {
	const [cluster, model] = await Promise.all([startNats(), startManualModel()])
	const program = newerProgram(t)
	const { newHome, start, kill } = openMembers({ SVC_LOG_LEVEL: 'info' })
	t.teardown(async () => {
		await kill()
		await Promise.all([cluster[Symbol.asyncDispose](), model.stop()])
	})
	const config = `
server: { shutdown_grace_s: 0 }
store: { url: '${cluster.url}', replicas: 1 }
${providersAt({ held: model.url })}`
	const olderHome = newHome({ config })
	const works = ({ home }: MemberProcess): Promise<unknown> => eventually(() => roleOf(home) === 'working')
	let token = ''
	const request = (gateway: GatewayProcess, method: string, path: string, body?: unknown) =>
		send(gateway.url + path, method, { token, ...(body !== undefined && { body }) })

	const client = await openClient({ url: cluster.url })
	t.teardown(() => client.close())
	const names = namesOf('svc')
	const stored = async (root: string, key: readonly [string, ...string[]]): Promise<unknown> => {
		const found = await client.last(names.state, `${root}.${subjectToken(joinKey(key))}`)
		return found && decodeValue(found.data, 0, found.data.length)
	}
	const gradeOf = async (name: string) =>
		((await stored('svc.kv.r.0', ['agents', name])) as { grade?: string } | undefined)?.grade
	const formatNow = async () => ((await stored('svc.kv.q.0', ['meta', 'format'])) as { format: number }).format

	let older = await start(olderHome)
	token = (await request(older, 'POST', '/v1/auth/tokens', { scopes: ['*'] })).body.token
	await request(older, 'POST', '/v1/agents', { name: 'anna' })
	const runs = new Map<string, string>()
	const begin = async (gateway: GatewayProcess, prompt: string): Promise<void> => {
		runs.set(prompt, (await request(gateway, 'POST', '/v1/agents/anna/runs', { prompt })).body.run_id)
		await model.called(prompt)
	}
	/** Answers the model calls of a run, and returns its final status. */
	const finished = async (gateway: GatewayProcess, prompt: string): Promise<unknown> => {
		let status: unknown
		await eventually(async () => {
			for (const call of model.calls) if (call.open && call.prompt === prompt) call.answer('done')
			status = (await request(gateway, 'GET', `/v1/runs/${runs.get(prompt)}`)).body.status
			return status === 'completed' || status === 'failed'
		})
		return status
	}
	await begin(older, 'first')

	const newerHome = newHome({ config })
	let current = await start(newerHome, { program })
	await older.end()
	await works(current)
	t.equal(await formatNow(), format, 'a newer gateway that takes over keeps the format')
	t.match(
		current.errors(),
		`set store.format to ${newer} once every gateway has this version`,
		'it states how to raise the format',
	)
	await request(current, 'POST', '/v1/agents', { name: 'bella' })
	t.equal(await gradeOf('bella'), undefined, 'it stores records of that format')

	t.equal(await finished(current, 'first'), 'completed', 'a run of the older gateway continues')

	older = await start(olderHome)
	t.same(
		[(await request(older, 'GET', '/v1/agents/anna')).status, (await request(older, 'GET', '/v1/agents/bella')).status],
		[200, 200],
		'an older gateway waits, and forwards to it',
	)
	const { stdout } = await svcFor({ home: olderHome })(['doctor', '--only', 'store.cluster', '--json'])
	t.match(stdout, /process \d+\) \(\S+, works\), .*process \d+\) \(\S+, waits\)/, 'the doctor lists both')
	await current.end()
	await works(older)
	t.equal((await request(older, 'GET', '/v1/agents/bella')).status, 200, 'it takes over again')
	await begin(older, 'second')

	const raising = { program, env: { SVC_CLUSTER_FORMAT: String(newer) } }
	const silent = await openClient({ url: cluster.url })
	answerDiscovery(silent, names, () => ({ name: 'g9', version: '0.2.0', format, works: false }))
	await older.end()
	current = await start(newerHome, raising)
	t.equal(await formatNow(), format, 'the format is not raised while an older gateway answers')
	t.match(current.errors(), `stop these gateways, which cannot read format ${newer}: g9, version 0.2.0`)
	await silent.close()
	await current.end()

	current = await start(newerHome, raising)
	t.equal(await formatNow(), newer, 'the format is raised once none does')
	t.same([await gradeOf('anna'), await gradeOf('bella')], ['new', 'new'], 'stored records are converted')
	await request(current, 'POST', '/v1/agents', { name: 'cara' })
	t.equal(await gradeOf('cara'), 'new', 'new records have the new format')
	await t.rejects(
		start(olderHome),
		{
			message: new RegExp(
				`has format ${newer}, and this version reads formats up to ${format}: start version 9.9.0 or a newer one`,
			),
		},
		'a gateway that is too old is refused',
	)
	t.equal((await request(current, 'GET', '/readyz')).status, 200, 'the working gateway is not affected')

	t.equal(await finished(current, 'second'), 'completed', 'a run from before the upgrade ends after it')
})

/** The folder of a changed copy of this program. */
function newerProgram(t: Test): string {
	const folder = testFolder(t)
	for (const name of ['core', 'plugins', 'sandbox', 'config', 'package.json'])
		cpSync(join(root, name), join(folder, name), { recursive: true })
	symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
	const change = (file: string, ...changes: [from: string, to: string][]): void => {
		const path = join(folder, file)
		let text = readFileSync(path, 'utf8')
		for (const [from, to] of changes) {
			if (!text.includes(from)) throw new Error(`${file} does not contain ${from}`)
			text = text.replace(from, to)
		}
		writeFileSync(path, text)
	}
	change(
		'core/store/format.ts',
		[`export const format: number = ${format}`, `export const format: number = ${newer}`],
		[
			/formatSince = '[^']*'/.exec(readFileSync(join(folder, 'core/store/format.ts'), 'utf8'))?.[0] ?? '?',
			"formatSince = '9.9.0'",
		],
	)
	change('plugins/agents/migrations.ts', [
		'export default [livenessRecords]',
		`export default [livenessRecords, {
	name: 'agents-grades',
	about: 'agents',
	format: ${newer},
	places: () => [{ prefix: ['agents'] }],
	convert: (entries) => entries.flatMap(({ key, value, rev }) => value.grade ? [] : [{ key, value: { ...value, grade: 'new' }, expect: rev }]),
}]`,
	])
	change(
		'plugins/agents/agents.ts',
		['{ store, emit, extensions, config:', '{ store, emit, extensions, gateway, config:'],
		[
			'config, created_at: now() }',
			`config, created_at: now(), ...(gateway.dataFormat() >= ${newer} && { grade: 'new' }) }`,
		],
	)
	return folder
}
