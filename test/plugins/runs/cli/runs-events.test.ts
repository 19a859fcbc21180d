/** svc runs, svc events tail and completion: runs of all agents, short ids, earlier events, local times. */
import { execFile } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { exitCodes } from '../../../../core/cli/contract.ts'
import { startGateway } from '../../../support/gateway.ts'
import type { Answer } from '../../../support/gateway.ts'
import { startManualModel } from '../../../support/manual-model.ts'
import { svcFor } from '../../../support/cli.ts'

const svcFile = fileURLToPath(new URL('../../../../core/svc.mjs', import.meta.url))
const execute = promisify(execFile)
const model = await startManualModel()
t.teardown(() => model.stop())
const gateway = await startGateway({
	config: `
providers:
  held: {kind: openai, base_url: "${model.url}", model: held}
  offline: {kind: offline}
default_provider: offline
`,
})
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)
for (const name of ['ada', 'bob', 'held'])
	await gateway.request('POST', '/v1/agents', { body: { name, config: name === 'held' ? { provider: 'held' } : {} } })
for (const [agent, prompt] of [
	['ada', 'first'],
	['bob', 'second'],
	['ada', 'third'],
])
	await svc(['run', agent ?? '', prompt ?? ''])

void t.test('svc runs shows the runs of all agents, newest first, with the ends of their ids', async (t) => {
	const { body } = await gateway.request('GET', '/v1/runs')
	t.strictSame(
		body.runs.map(({ agent, prompt }: Answer) => [agent, prompt]),
		[
			['ada', 'third'],
			['bob', 'second'],
			['ada', 'first'],
		],
	)
	t.equal(body.next_cursor, null)
	const { stdout } = await svc(['runs'])
	const rows = stdout.trimEnd().split('\n').slice(1)
	t.match(rows, [/ ada .*third/, / bob .*second/, / ada .*first/])
	for (const [n, row] of rows.entries()) t.ok(row.startsWith(`${body.runs[n].run_id.slice(-8)} `), row)
	const full = await svc(['runs', 'list', '--full', '--limit', '1'])
	t.match(full.stdout, body.runs[0].run_id)
	t.equal((await svc(['runs', '--json'])).json().length, 3)
	t.equal((await svc(['runs', 'list', '--status', 'failed'])).stdout.trim(), 'No run is failed.')
})

void t.test('a page of GET /v1/runs continues after the previous one', async (t) => {
	const seen: string[] = []
	let cursor: string | null = null
	do {
		const { body }: Answer = await gateway.request(
			'GET',
			`/v1/runs?limit=2${cursor === null ? '' : `&cursor=${cursor}`}`,
		)
		seen.push(...body.runs.map((run: Answer) => run.prompt))
		cursor = body.next_cursor
	} while (cursor !== null)
	t.strictSame(seen, ['third', 'second', 'first'])
	t.equal((await gateway.request('GET', '/v1/runs?id=xyz%25')).status, 400)
})

void t.test('a run is found by the end or the beginning of its id, if that is unique', async (t) => {
	const [{ run_id }] = (await gateway.request('GET', '/v1/runs?limit=1')).body.runs
	t.match((await svc(['runs', 'show', run_id.slice(-8)])).stdout, 'third')
	t.match((await svc(['runs', 'show', run_id])).stdout, 'third')
	const several = await svc(['runs', 'show', run_id.slice(0, 4)])
	t.equal(several.code, exitCodes.usage)
	t.match(several.stderr, 'several runs have ids')
	const none = await svc(['runs', 'show', 'ffffffffffff'])
	t.equal(none.code, exitCodes.not_found)
	const audit = await svc(['audit', '--run', run_id.slice(-8), '--type', 'run.completed'])
	t.match(audit.stdout, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} run\.completed ada [0-9a-f]{8} /)
	t.notMatch(audit.stdout, run_id)
	t.match((await svc(['audit', '--full', '--run', run_id, '--type', 'run.completed'])).stdout, run_id)
})

void t.test('svc events tail begins with earlier events, and omits the pieces of answers', async (t) => {
	const last = await svc(['events', 'tail', '-n', '2', '--count', '2', '--json', '--type', 'run.completed'])
	const lines = last.stdout
		.trim()
		.split('\n')
		.map((line) => JSON.parse(line) as Answer)
	t.strictSame(
		lines.map(({ agent_id }) => agent_id),
		['bob', 'ada'],
		'oldest first',
	)
	const since = await svc(['events', 'tail', '--since', '10m', '--count', '3', '--json', '--type', 'run.completed'])
	t.equal(since.stdout.trim().split('\n').length, 3)

	const tail = async (flags: string[], prompt: string): Promise<string> => {
		const begun = Promise.withResolvers<void>()
		const tailing = svc(['events', 'tail', '-n', '1', '--agent', 'held', '--count', '5', ...flags], {
			onOutput: (text) => text.includes('run.completed') && begun.resolve(),
		})
		await begun.promise
		const ran = svc(['run', 'held', prompt])
		const call = await model.called(prompt)
		call.say('a piece ')
		call.answer('and the end.')
		await ran
		return (await tailing).stdout
	}
	await svc(['run', 'held', '--detach', 'before'])
	;(await model.called('before')).answer('.')
	await svc(['runs', 'follow', (await gateway.request('GET', '/v1/agents/held/runs')).body[0].run_id])
	t.match(await tail([], 'no pieces'), /run\.completed .*\n.*\n.*\n.* model\.request .*\n.* model\.response /)
	t.match(await tail(['--stream'], 'with pieces'), /run\.completed .*\n.*\n.*\n.* model\.request .*\n.* model\.stream /)
})

void t.test('times are local', async (t) => {
	const shown = async (zone: string): Promise<string> => {
		const ran = await execute(process.execPath, [svcFile, 'agents', 'list'], {
			env: { PATH: process.env.PATH, HOME: gateway.home, SVC_HOME: gateway.home, TZ: zone },
		})
		return /ada +(\S+ \S+)/.exec(ran.stdout)?.[1] ?? ran.stderr
	}
	const hour = 3_600_000
	t.equal(Date.parse(await shown('Etc/GMT-5')) - Date.parse(await shown('UTC')), 5 * hour)
})

void t.test('completion in bash works with an alias, and completes ids of runs', async (t) => {
	const { runs } = (await gateway.request('GET', '/v1/runs')).body
	const wanted = runs.find((run: Answer) => run.prompt === 'second').run_id.slice(-8)
	const script = [
		`shopt -s expand_aliases`,
		`alias svc="'${process.execPath}' '${svcFile}'"`,
		`source /dev/stdin <<< "$(eval svc completion bash)"`,
		`COMP_WORDS=(svc runs show ${wanted.slice(0, 6)}); COMP_CWORD=3; _svc; echo "\${COMPREPLY[@]}"`,
		`COMP_WORDS=(svc run b); COMP_CWORD=2; _svc; echo "\${COMPREPLY[@]}"`,
	].join('\n')
	const { stdout } = await execute('bash', ['--norc', '-c', script], {
		env: { PATH: process.env.PATH, HOME: gateway.home, SVC_HOME: gateway.home },
	})
	t.strictSame(stdout.trim().split('\n'), [wanted, 'bob'])
})

void t.test('svc runs retry starts several runs again, and reports those that it cannot', async (t) => {
	const ids: string[] = []
	for (const conversation of ['one', 'two']) {
		const { body } = await gateway.request('POST', '/v1/agents/held/runs', { body: { prompt: 'wait', conversation } })
		await gateway.request('POST', `/v1/runs/${body.run_id}/cancel`)
		ids.push(body.run_id)
	}
	const [done] = (await svc(['runs', 'list', 'ada', '--limit', '1', '--json'])).json()
	const some = await svc(['runs', 'retry', ...ids, done.run_id, '--json'])
	t.equal(some.code, exitCodes.failed)
	t.match(some.stderr, /is completed; only a failed or stopped run[^]*1 run could not be started again/)
	t.match(some.json(), [{ agent: 'held', prompt: 'wait' }, { agent: 'held' }])
	for (const { run_id } of some.json()) await gateway.request('POST', `/v1/runs/${run_id}/cancel`)
})

void t.test('svc runs files lists and saves the files of an answer', async (t) => {
	const prompt = `/tool conversation.send_file ${JSON.stringify({ text: 'a,b\n', name: 'numbers.csv' })}`
	await gateway.request('POST', '/v1/agents', { body: { name: 'sender' } })
	const ran = await svc(['run', 'sender', prompt])
	t.match(ran.stderr, /\+ numbers\.csv \(svc runs files .+ --to \.\)/)
	const [run] = (await svc(['runs', 'list', 'sender', '--json'])).json()
	t.match((await svc(['runs', 'show', run.run_id])).stdout, /files: +numbers\.csv/)
	t.match((await svc(['runs', 'files', run.run_id])).stdout, /numbers\.csv +text\/csv +4/)
	const folder = t.testdir()
	const saved = await svc(['runs', 'files', run.run_id, '--to', folder, '--json'])
	t.match(saved.json(), [{ name: 'numbers.csv', path: join(folder, 'numbers.csv') }])
	t.equal(readFileSync(join(folder, 'numbers.csv'), 'utf8'), 'a,b\n')
	const again = await svc(['runs', 'files', run.run_id, '--to', folder])
	t.equal(again.code, exitCodes.usage)
	t.match(again.stderr, /the file exists already/)
	t.match((await svc(['runs', 'files', run.run_id, '--to', join(folder, 'none')])).stderr, /the folder does not exist/)
})

void t.test('svc runs files saves files with equal, reserved and long names', async (t) => {
	const send = (name: string, text: string): string => `/tool conversation.send_file ${JSON.stringify({ text, name })}`
	await gateway.request('POST', '/v1/agents', { body: { name: 'namer' } })
	const long = `${'é'.repeat(190)}.csv`
	const files = [
		['same.txt', 'one'],
		['same.txt', 'two'],
		['.bash_profile', 'no program reads this'],
		['..', 'a folder'],
		[long, 'long'],
	] as const
	const folder = t.testdir()
	const ran = await svc(['run', 'namer', files.map(([name, text]) => send(name, text)).join('\n'), '--json'])
	t.equal(ran.code, 0, ran.stderr)
	const [run] = (await svc(['runs', 'list', 'namer', '--json'])).json()
	t.equal(run.files.length, files.length)
	const saved = await svc(['runs', 'files', run.run_id, '--to', folder, '--json'])
	t.equal(saved.code, 0, saved.stderr)
	const names = readdirSync(folder)
	t.equal(names.length, files.length)
	for (const name of ['same.txt', 'same-2.txt', 'bash_profile', 'file']) t.ok(names.includes(name), name)
	t.strictSame(
		saved.json().map(({ path }: Answer) => readFileSync(path, 'utf8')),
		files.map(([, text]) => text),
	)
})
