/** An upgrade that is killed repeatedly gives the same home as an uninterrupted one, and its backup has the earlier contents. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openEnv } from '../../core/store/lmdb/env.ts'
import { sealedTables } from '../../core/store/lmdb/tables.ts'
import type { Tables } from '../../core/store/lmdb/tables.ts'
import { svcFor } from '../support/cli.ts'
import { send } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import { fillHome } from './fill.ts'
import { openHome } from './home.ts'

const kills = Number(process.env['UPGRADE_KILLS'] ?? 3)
const [memories, events] = process.env['UPGRADE_LARGE'] === '1' ? [20_000, 100_000] : [600, 500]
const script = fileURLToPath(new URL('./upgrade-child.ts', import.meta.url))
const env = { MODEL_URL: 'http://127.0.0.1:9' }
/** Batches of an upgrade: 40 memories each. Some other records follow. */
const batches = memories / 40

void t.test(`${kills} kills of an upgrade with ${memories} memories and ${events} events`, async (t) => {
	const { folder, home, facts } = openHome('0.1.0')
	t.teardown(() => rmSync(folder, { recursive: true, force: true }))
	await fillHome(home, { memories, events })
	const before = await contentsOf(home)
	const uninterrupted = join(folder, 'uninterrupted')
	cpSync(home, uninterrupted, { recursive: true })
	t.equal(await upgrade(uninterrupted), 'complete')

	let interrupted = 0
	for (let kill = 0; kill < kills; kill++) {
		// The first kill is during the backup.
		const after = kill === 0 ? 0 : Math.ceil((Math.random() * 2.4 * batches) / kills)
		if ((await upgrade(home, after)) === 'killed') interrupted++
	}
	t.ok(interrupted > 1, `${interrupted} of ${kills} kills interrupted the upgrade`)
	t.equal(await upgrade(home), 'complete')
	const [expected, found] = await Promise.all([uninterrupted, home].map(contentsOf))
	t.ok((expected?.size ?? 0) > before.size + memories, 'each memory has an additional record of its text')
	t.strictSame(differences(expected, found), [])

	const [backup = ''] = readdirSync(join(home, 'backups')).filter((name) => !name.includes(facts.backup))
	const restoredHome = join(folder, 'restored')
	const restored = await svcFor({ home })(['restore', join(home, 'backups', backup), '--home', restoredHome], { env })
	t.equal(restored.code, 0, restored.stderr)
	t.strictSame(differences(before, await contentsOf(restoredHome)), [])

	const gateway = await spawnGateway(home, env)
	t.teardown(() => gateway.kill())
	const { body } = await send(
		`${gateway.url}/v1/agents/ada/memory/search?q=${encodeURIComponent('fact number 77')}`,
		'GET',
	)
	t.ok(body.length > 0)
	t.hasStrict((await send(`${gateway.url}/v1/agents/ada`, 'GET')).body, facts.reads['/v1/agents/ada'])
})

/** Upgrades in a separate process, which is killed in the middle of the batch after `killAfter` batches. */
async function upgrade(home: string, killAfter = Infinity): Promise<'killed' | 'complete'> {
	const child = spawn(process.execPath, [script, home], { stdio: ['pipe', 'pipe', 'inherit'] })
	child.stdin.on('error', () => {}) // the process may be dead
	const exit = once(child, 'exit') as Promise<[number | null, string | null]>
	let count = -1
	for await (const _ of createInterface({ input: child.stdout })) {
		if (++count > 0 && count <= killAfter) child.stdin.write('x')
		if (count === killAfter) setTimeout(() => child.kill('SIGKILL'), Math.random() * 5)
	}
	const [code, signal] = await exit
	if (signal === 'SIGKILL') return 'killed'
	if (code !== 0) throw new Error(`the upgrade ended with ${code ?? signal}`)
	return 'complete'
}

/** All stored values by table and key, without revisions, which depend on the order of writes. */
async function contentsOf(home: string): Promise<Map<string, string>> {
	const { root, tables } = openEnv(join(home, 'data'), { readOnly: true })
	const contents = new Map<string, string>()
	for (const name of ['records', 'log', 'jobs', 'runs', 'agents'] satisfies (keyof Tables)[])
		for (const { key, value } of tables[name].getRange({ start: '\u0001', end: '\u{10ffff}' }))
			contents.set(`${name} ${key}`, sealedTables.includes(name) ? value.toString('latin1', 12) : '')
	await root.close()
	return contents
}

function differences(one: Map<string, string> = new Map(), other: Map<string, string> = new Map()): string[] {
	return [...new Set([...one.keys(), ...other.keys()])].filter((key) => one.get(key) !== other.get(key))
}
