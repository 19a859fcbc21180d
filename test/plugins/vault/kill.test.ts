/**
 * kill -9 while the master key is rotated and secrets are stored. Afterwards every secret has its last acknowledged value or an
 * unacknowledged later one, and there is one key.
 *
 * SVC_TEST_KILLS sets the number of kills (1).
 */
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { makeHome, send } from '../../support/gateway.ts'
import { spawnGateway } from '../../support/process.ts'
import type { GatewayProcess } from '../../support/process.ts'

const KILLS = Number(process.env.SVC_TEST_KILLS ?? 1)
const SECRETS = 150

/** A plugin with a route that returns the digests of all values. */
const opener = `import { createHash } from 'node:crypto'
export default {
	name: 'opener',
	needs: ['vault', 'auth'],
	http(server, ctx) {
		server.route({
			method: 'GET',
			path: '/v1/digests',
			handler: async () => {
				const vault = ctx.use('vault')
				const digests = {}
				for (const { id } of await vault.secrets.list())
					digests[id] = createHash('sha256').update(await vault.open(id)).digest('hex')
				return digests
			},
		})
	},
}`

void t.test(`no secret is lost in ${KILLS} kills`, { timeout: 60_000 + KILLS * 10_000 }, async (t) => {
	const home = makeHome({ config: 'plugins: { opener: true }\n', files: { 'plugins/opener/index.js': opener } }, t)
	let gateway: GatewayProcess = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	const request = (method: string, path: string, body?: object) =>
		send(`${gateway.url}/v1/vault/${path}`, method, body ? { body } : {})

	/** By id: all values that the secret can have. */
	const expected = new Map<string, string[]>()
	const made = await Promise.all(
		Array.from({ length: SECRETS }, (_, n) => request('POST', 'secrets', { name: `KEY_${n}`, value: `value ${n}` })),
	)
	for (const [n, { status, body }] of made.entries()) {
		t.equal(status, 201)
		expected.set(body.id, [`value ${n}`])
	}
	const began = performance.now()
	await request('POST', 'rotate-key')
	const span = performance.now() - began
	let rotated = 0
	let changed = 0
	const keysSeen = new Set<string>()
	for (let kill = 0; kill < KILLS; kill++) {
		const ids = [...expected.keys()]
		const change = async (n: number): Promise<void> => {
			const id = ids[(kill * 3 + n) % ids.length] as string
			const value = `value of round ${kill}, ${n}`
			expected.get(id)?.push(value)
			const reply = await request('PUT', `secrets/${id}`, { value }).catch(() => null)
			if (reply?.status !== 200) return
			expected.set(id, [value])
			changed++
		}
		const first = change(1)
		const rotating = request('POST', 'rotate-key').then(
			({ status }) => (t.equal(status, 200), rotated++),
			() => {}, // the gateway was killed meanwhile
		)
		const changing = [first, change(2), change(3)]
		const adding = [1, 2].map(async (n) => {
			const value = `added in round ${kill}, ${n}`
			const reply = await request('POST', 'secrets', { name: `ADDED_${kill}_${n}`, value }).catch(() => null)
			if (reply?.status === 201) expected.set(reply.body.id, [value])
		})
		const all = Promise.all([rotating, ...changing, ...adding])
		// A time between the start of the rotation and about twice its duration.
		await Promise.race([pause(((kill + Math.random()) / KILLS) * 2 * span), all])
		await gateway.kill()
		await all

		gateway = await spawnGateway(home)
		t.strictSame(
			readdirSync(join(home, 'keys')).filter((name) => !name.endsWith('.tmp')),
			['vault.key'],
		)
		keysSeen.add(readFileSync(join(home, 'keys/vault.key'), 'utf8'))
		const digests = (await send(`${gateway.url}/v1/digests`, 'GET')).body as Record<string, string>
		const wrong = [...expected].filter(([id, values]) => !values.some((value) => digests[id] === sha256(value)))
		t.strictSame(wrong, [], `after kill ${kill + 1}`)
		// An unacknowledged value is now either stored or lost.
		for (const [id, values] of expected)
			expected.set(
				id,
				values.filter((value) => digests[id] === sha256(value)),
			)
	}
	t.comment(`${rotated} keys and ${changed} values acknowledged, ${keysSeen.size} keys seen, ${expected.size} secrets`)
	// A few kills can all precede the end of the rotation.
	if (KILLS >= 10) t.ok(keysSeen.size > 1, 'the key was changed')
	t.equal((await request('POST', 'rotate-key')).status, 200)
	t.notOk(keysSeen.has(readFileSync(join(home, 'keys/vault.key'), 'utf8')), 'the key was changed at the end')
	t.equal(await gateway.end(), 0)
})

function sha256(text: string): string {
	return createHash('sha256').update(text).digest('hex')
}
