/** The engine on NATS when a server or a gateway fails. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { serverProblem } from '../../../plugins/cluster/nats/server-check.ts'
import type { LeaseTimes } from '../../../plugins/cluster/nats/lease.ts'
import { openClient } from '../../../plugins/cluster/nats/client.ts'
import { openNats } from '../../../plugins/cluster/nats/open.ts'
import type { NatsEngine, NatsOptions } from '../../../plugins/cluster/nats/open.ts'
import { infoOf, namesOf } from '../../../plugins/cluster/nats/streams.ts'
import { joinKey } from '../../../core/store/keys.ts'
import type { Key } from '../../../core/store/ports.ts'
import { newId } from '../../../core/util/ids.ts'
import { entry } from '../../contracts/store/log.ts'
import { rejects } from '../../contracts/store/records.ts'
import { examined } from '../../core/cli/doctor/healthy-home.ts'
import { testFolder } from '../../support/folder.ts'
import { startNats, withoutNats } from '../../support/nats.ts'
import { eventually } from '../../support/wait.ts'

const fixtures = fileURLToPath(new URL('../../fixtures/tls', import.meta.url))
const SERVERS = process.env.SVC_TEST_CLUSTER === 'all' ? 3 : 1

/** A holder that assumes for an hour that it holds the lease, like one that was suspended. */
const asleep = { renewMs: 3_600_000, holdMs: 3_600_000, takeMs: 3_600_000 }
/** Takes over a lease that was not renewed for `takeMs`. */
const eager = { renewMs: 100, holdMs: 60_000, takeMs: 300 }

void t.test('an unusable server is refused, and the error states what to change', (t) => {
	const usable = { version: '2.12.0', jetstream: true, max_payload: 16 * 1024 * 1024, server_name: 'n1' }
	t.equal(serverProblem(usable), null)
	t.equal(serverProblem({ ...usable, version: '3.0.1' }), null)
	t.match(serverProblem({ ...usable, version: '2.11.9' }), /n1 is nats-server 2\.11\.9, and 2\.12 or newer .*upgrade/)
	t.match(serverProblem({ ...usable, jetstream: false }), /n1 runs without JetStream: add/)
	t.match(serverProblem({ ...usable, max_payload: 1024 * 1024 }), /set "max_payload: 16MB"/)
	t.match(serverProblem(undefined), /did not identify itself/)
	t.end()
})

void t.test(`${SERVERS} server(s) of NATS`, { skip: withoutNats(), timeout: 300_000 }, async (t) => {
	const cluster = await startNats(SERVERS)
	t.teardown(() => cluster[Symbol.asyncDispose]())
	const open = (prefix: string, options: Partial<NatsOptions> = {}): Promise<NatsEngine> =>
		openNats({ url: cluster.url, prefix, replicas: SERVERS, ...options })

	await t.test('more copies than servers are refused', async (t) => {
		await t.rejects(openNats({ url: cluster.url, prefix: 'many', replicas: 5 }), {
			code: 'unavailable',
			message: /cannot keep 5 copies .* set store\.replicas to 1/,
		})
	})

	await t.test('a second gateway waits, and continues with everything that the first stored', async (t) => {
		const first = await open('wait')
		const holders: string[] = []
		let isOpen = false
		const waiting = (async () => {
			const engine = await open('wait', { onLeaseObserved: (found) => void (found && holders.push(found.holder)) })
			isOpen = true
			return engine
		})()
		await eventually(() => holders.length)
		const rev = await first.store.put(['a'], { n: 1 })
		await first.store.put(['gone'], 1)
		await first.store.delete(['gone'])
		const cursors = await first.log.append('r', 0, [{ ...entry('r', 1), step: 'one' }])
		await first.queue.enqueue({ id: 'job', body: { n: 1 } })
		t.equal(isOpen, false)
		await first[Symbol.asyncDispose]()
		await using second = await waiting
		t.match(holders, [/process \d+/])
		t.strictSame(await second.store.get(['a']), { key: ['a'], value: { n: 1 }, rev })
		t.equal(await second.store.get(['gone']), undefined)
		await second.store.create(['gone'], 2)
		t.strictSame(await Array.fromAsync(second.store.keys(['gone'])), [['gone']])
		t.equal(second.log.head(), cursors[0])
		t.match(await second.log.journal('r'), { last: 1, steps: ['one'] })
		t.equal(second.queue.waiting(), 1)
		await rejects(t, first.store.get(['a']), 'unavailable')
	})

	await t.test('a wait ends with its signal', async (t) => {
		await using _ = await open('ends')
		const end = new AbortController()
		await t.rejects(open('ends', { signal: end.signal, onLeaseObserved: () => end.abort() }), { name: 'AbortError' })
	})

	await t.test('late writes of a former holder reach no stream', async (t) => {
		const former = await open('late', { times: asleep })
		await former.store.put(['a'], 'first')
		await former.log.append('r', 0, [entry('r', 1)])
		await using next = await open('late', { times: eager })
		await next.log.append('r', 1, [entry('r', 2)])
		await Promise.all([
			rejects(t, former.store.put(['a'], 'late'), 'unavailable'),
			rejects(t, former.store.put(['b'], 'late'), 'unavailable'),
			rejects(t, former.log.append('r', 1, [entry('r', 2)]), 'unavailable'),
			rejects(t, former.log.append(null, 0, [entry(null, 0)]), 'unavailable'),
			rejects(t, former.queue.enqueue({ id: 'late', body: {} }), 'unavailable'),
		])
		t.match((await former.lost).message, /has taken over/)
		await rejects(t, former.store.get(['a']), 'unavailable')
		await former[Symbol.asyncDispose]()
		t.equal((await next.store.get(['a']))?.value, 'first')
		t.equal(await next.store.get(['b']), undefined)
		const { entries } = await next.log.read({}, null, 10)
		t.strictSame(
			entries.map(({ event }) => event.sequence),
			[1, 2],
		)
		t.equal(next.queue.waiting(), 0)
	})

	await t.test('without renewals a holder neither reads nor writes', async (t) => {
		await using engine = await open('short', { times: { renewMs: 3_600_000, holdMs: 6_000, takeMs: 3_600_000 } })
		await eventually(() => engine.trouble() !== null)
		await rejects(t, engine.store.get(['a']), 'unavailable')
		const refused = await engine.store.put(['a'], 2).catch((error: unknown) => error)
		t.match(refused, { code: 'unavailable', headers: { 'retry-after': /\d/ } })
	})

	await t.test('deleted records stay deleted when a server is killed after their markers expired', async (t) => {
		const engine = await open('gone', { deletedTtlS: 1 })
		const keys = Array.from({ length: 20 }, (_, at): Key => ['k', String(at)])
		for (const key of keys) await engine.store.put(key, 'first')
		for (const key of keys) await engine.store.put(key, 'second')
		for (const key of keys.slice(0, 5)) await engine.store.delete(key)
		await engine.store.commit(
			'k',
			keys.slice(5, 10).map((key) => ({ key, value: undefined })),
		)
		await engine.store.put(['k', 'last'], 1)
		await engine[Symbol.asyncDispose]()
		const client = await openClient({ url: cluster.url })
		const left = async (): Promise<number> => {
			const { state } = await infoOf(client, namesOf('gone').state, { subjects_filter: 'gone.kv.r.>' })
			return Object.keys(state.subjects ?? {}).length
		}
		await eventually(left, (count) => count === 11)
		await Promise.all(cluster.nodes.map((node) => node.kill()))
		await Promise.all(cluster.nodes.map((node) => node.start()))
		await eventually(() => left().catch(() => 0))
		t.equal(await left(), 11)
		await client.close()
		await using again = await open('gone')
		t.equal((await Array.fromAsync(again.store.keys(['k']))).length, 11)
		t.equal(await again.store.get(['k', '3']), undefined)
		t.equal((await again.store.get(['k', '15']))?.value, 'second')
	})

	await t.test('a killed server is a pause: everything acknowledged exists once', async (t) => {
		await using engine = await open('kill', { times: { renewMs: 500, holdMs: 120_000, takeMs: 240_000 } })
		const received: number[] = []
		engine.log.subscribe((_, { sequence }) => received.push(sequence))
		let last = 0
		const revs = new Set<string>()
		const write = async (): Promise<void> => {
			for (let n = 1; n <= 60; n++) {
				await engine.log.append('r', n - 1, [{ ...entry('r', n, { event_id: newId() }), step: n }], {
					scope: 's',
					ops: async () => [
						{ key: ['s', 'last'], value: n },
						{ key: ['s', String(n)], value: n, expect: null },
					],
				})
				revs.add(await engine.store.put(['s', 'n'], n))
				last = n
			}
		}
		const writing = write()
		for (const at of [15, 25, 35, 45]) {
			await eventually(() => last >= at)
			const { leader } = engine.remote()
			const node = cluster.nodes.find(({ name }) => name === leader)
			await node?.kill()
			await node?.start()
		}
		await writing
		const sequences = Array.from({ length: 60 }, (_, at) => at + 1)
		t.strictSame(received, sequences)
		t.strictSame((await engine.log.journal('r')).steps, sequences)
		const { entries } = await engine.log.read({ run_id: 'r' }, null, 100)
		t.strictSame(
			entries.map(({ event }) => event.sequence),
			sequences,
		)
		t.equal((await engine.store.get(['s', 'n']))?.value, 60)
		t.equal((await engine.store.get(['s', 'last']))?.value, 60)
		t.equal(revs.size, 60)
	})
})

void t.test(
	'the doctor reports that no gateway works on the data, or that the working one is unreachable',
	{ skip: withoutNats() },
	async (t) => {
		await using cluster = await startNats()
		const home = testFolder(t)
		const env = { HOME: home, SVC_CLUSTER: cluster.url, SVC_CLUSTER_REPLICAS: '1' }
		const found = async () => (await examined(home, ['store.cluster'], { env })).checks
		const open = (times: LeaseTimes, options: Partial<NatsOptions> = {}) =>
			openNats({ url: cluster.url, prefix: 'svc', replicas: 1, times, ...options })
		const nowhere = { main: 'http://127.0.0.1:1', legacy: null, key_check: '' }

		{
			await using working = await open({ ...asleep, renewMs: 100 })
			working.tenure.advertise(nowhere)
			t.match(await eventually(found, ([one]) => one?.level === 'warning'), [
				{
					message: /works on the cluster, and cannot be reached from here at http:\/\/127\.0\.0\.1:1/,
					fix: /store\.advertise/,
				},
			])
		}

		const client = await openClient({ url: cluster.url })
		const dead = { id: newId(), holder: 'elsewhere, process 1', reach: nowhere }
		await client.ask(namesOf('svc').lease, JSON.stringify(dead))
		t.match(await found(), [
			{
				level: 'warning',
				message: /elsewhere, process 1 .*does not answer, and no other gateway waits/,
				fix: /svc start/,
			},
		])
		const seen = Promise.withResolvers<void>()
		const over = new AbortController()
		const waiting = open(asleep, { signal: over.signal, onLeaseObserved: () => seen.resolve() })
		await seen.promise
		t.match(await found(), [
			{
				level: 'warning',
				message: /elsewhere, process 1 .*does not answer; a waiting gateway takes over/,
				fix: /check again/,
			},
		])
		over.abort()
		await t.rejects(waiting)
		await client.close()
	},
)

void t.test('a full account is named as the reason', { skip: withoutNats(), timeout: 120_000 }, async (t) => {
	await using cluster = await startNats(1, {
		more: `
accounts { small { jetstream: { max_file: 2MB, max_mem: 1MB }, users: [{ user: u, password: p }] } }`,
	})
	const url = cluster.url.replace('nats://', 'nats://u:p@')
	const open = (): Promise<NatsEngine> => openNats({ url, prefix: 'full', replicas: 1, home: 'one', times: eager })
	const engine = await open()
	let n = 0
	const fill = async (bytes: number): Promise<unknown> => {
		try {
			for (const end = n + 2_000; n < end; n++) await engine.store.put(['a', `${n}`], 'x'.repeat(bytes))
		} catch (error) {
			return error
		}
		return undefined
	}
	t.match(await fill(50_000), { code: 'storage_full', message: /no space left: resource limits exceeded for account/ })
	t.match(engine.trouble(), /no space left: resource limits exceeded for account/, 'for operators')
	for (const sizes of [
		[50_000, 10],
		[10, 50_000],
		[20_000, 20_000, 20_000, 20_000],
	])
		await rejects(
			t,
			engine.store.commit(
				'b',
				sizes.map((bytes, at) => ({ key: ['b', `${at}`], value: 'x'.repeat(bytes) })),
			),
			'storage_full',
		)
	t.equal((await engine.store.get<string>(['a', '3']))?.value.length, 50_000)
	// A renewal of the lease still fits. That one write fits does not mean that the next one does.
	await engine.store.put(['b'], 1)
	t.not(engine.trouble(), null)
	await engine.store.delete(['a', '3'])
	await eventually(() => engine.trouble() === null)
	t.match(await fill(50_000), { code: 'storage_full' })
	const operator = await openClient({ url })
	const probes = async () => (await infoOf(operator, 'full_events')).state
	// A probe frees its space when it expires. Once none was stored while the space was filled, none fits any more.
	let last: number
	do {
		await eventually(async () => (await probes()).bytes === 0)
		last = (await probes()).last_seq
		t.match(await fill(20_000), { code: 'storage_full' })
	} while ((await probes()).last_seq !== last)
	for (const bytes of [1_000, 1]) t.match(await fill(bytes), { code: 'storage_full' })
	// Until there is no space for the lease either.
	await operator.api('STREAM.CREATE.rest', { name: 'rest', subjects: ['rest'], storage: 'file' })
	while (!(await operator.ask('rest', '')).json<{ error?: object }>().error);
	await operator.close()
	const monotonic = performance.now.bind(performance)
	t.teardown(() => Object.assign(performance, { now: monotonic }))
	performance.now = () => monotonic() + eager.holdMs
	await eventually(() =>
		/has not answered for 60 s \(.*resource limits exceeded for account/.test(engine.trouble() ?? ''),
	)
	performance.now = monotonic
	await engine[Symbol.asyncDispose]()
	await t.rejects(open(), { code: 'unavailable', message: /lease cannot be written: resource limits exceeded/ })
})

for (const removed of ['state', 'events'] as const)
	void t.test(
		`the gateway stops after a removal of the stream of ${removed}`,
		{ skip: withoutNats(), timeout: 120_000 },
		async (t) => {
			await using cluster = await startNats(1)
			const open = (): Promise<NatsEngine> => openNats({ url: cluster.url, prefix: 'gone', replicas: 1 })
			const engine = await open()
			await engine.store.put(['a'], 1)
			await engine.log.append('r', 0, [entry('r', 1)])
			const operator = await openClient({ url: cluster.url })
			await operator.api(`STREAM.DELETE.gone_${removed}`)
			// The log must not seem empty: the run would repeat its steps.
			if (removed === 'events') await rejects(t, engine.log.journal('r'), 'unavailable')
			const refused = {
				code: 'unavailable',
				message: new RegExp(`stream gone_${removed} was removed from the cluster: restore`),
			}
			const outcomes = await Promise.allSettled([
				engine.store.put(['a'], 2),
				engine.log.append('r', 1, [entry('r', 2)]),
			])
			t.match(await engine.lost, refused)
			t.match(outcomes[removed === 'state' ? 0 : 1], { status: 'rejected', reason: { code: 'unavailable' } })
			await engine[Symbol.asyncDispose]()
			await t.rejects(open(), refused)
			await operator.api(`STREAM.DELETE.gone_${removed === 'state' ? 'events' : 'state'}`)
			await operator.close()
			const empty = await open()
			t.equal(await empty.store.get(['a']), undefined, 'an operator can begin without data')
			await empty[Symbol.asyncDispose]()
		},
	)

void t.test('a message that no gateway wrote is skipped, or named in an error', { skip: withoutNats() }, async (t) => {
	await using cluster = await startNats(1)
	const warnings: unknown[] = []
	const log = { warn: (line: unknown) => warnings.push(line) } as unknown as NatsOptions['log']
	const open = (): Promise<NatsEngine> => openNats({ url: cluster.url, prefix: 'stray', replicas: 1, log })
	const operator = await openClient({ url: cluster.url })
	t.teardown(() => operator.close())
	const publish = async (stream: string, kind: string, key: string, text = 'hello'): Promise<number> => {
		const { config } = await infoOf(operator, stream)
		const root = config.subjects.find((one) => one.endsWith(`.${kind}.>`))?.slice(0, -1)
		return (await operator.ask(`${root}${key}`, text, {})).json<{ seq: number }>().seq
	}
	const engine = await open()
	await engine.log.append('r', 0, [entry('r', 1)])
	await engine[Symbol.asyncDispose]()

	const skipped = await publish('stray_events', 'ev', 'greeting')
	const second = await open()
	await second.log.append('r', 1, [entry('r', 2)])
	await second[Symbol.asyncDispose]()
	const after = await open()
	t.match(warnings, [
		`the message ${skipped} of the stream stray_events was skipped: no gateway writes to stray.ev.greeting`,
	])
	t.equal((await after.log.journal('r')).last, 2)
	t.equal((await after.log.read({}, null, 10)).entries.length, 2)
	await after.store.put(['a'], 1)
	await after.store.put(['b'], 2)
	await after[Symbol.asyncDispose]()

	// Subjects that resemble a gateway's: in the same places, and with padding after the base64url of a key.
	const subjectOf = (key: Key): string => Buffer.from(joinKey(key)).toString('base64url')
	for (const end of ['g.note', '0.a.b', '0.a$b']) await publish('stray_events', 'ev', end)
	await publish('stray_state', 'kv', `r.0.${subjectOf(['a'])}=`, '')
	await publish('stray_state', 'kv', `r.0.${subjectOf(['b'])}=`)
	const third = await open()
	t.match(warnings.slice(-3), [/ev\.g\.note$/, /ev\.0\.a\.b$/, /ev\.0\.a\$b$/])
	t.equal((await third.log.journal('r')).last, 2)
	t.equal((await third.log.read({}, third.log.head(), 10)).entries.length, 0)
	t.strictSame(await Promise.all(['a', 'b'].map(async (key) => (await third.store.get([key]))?.value)), [1, 2])
	await third[Symbol.asyncDispose]()

	// As if the stream were damaged.
	const seq = await publish('stray_events', 'ev', `0.${Buffer.from('other').toString('base64url')}`)
	const unreadable = `the message ${seq} of the stream stray_events cannot be read: .*\\(nats stream rmm stray_events ${seq}\\)$`
	await t.rejects(open(), { code: 'store_damaged', message: new RegExp(unreadable) })
	await operator.api('STREAM.MSG.DELETE.stray_events', { seq })
	const record = await publish('stray_state', 'kv', `r.0.${subjectOf(['odd'])}`)
	await using last = await open()
	await t.rejects(last.store.get(['odd']), {
		code: 'store_damaged',
		message: new RegExp(`message ${record} of the stream stray_state, .*rmm stray_state ${record}`),
	})
})

for (const purged of ['state', 'events'] as const)
	void t.test(
		`the gateway stops after a removal of the messages of the stream of ${purged}`,
		{ skip: withoutNats(), timeout: 120_000 },
		async (t) => {
			await using cluster = await startNats(1)
			const times = { renewMs: 100, holdMs: 12_000, takeMs: 300 }
			const open = (): Promise<NatsEngine> => openNats({ url: cluster.url, prefix: 'empty', replicas: 1, times })
			const purge = async (): Promise<void> => {
				const operator = await openClient({ url: cluster.url })
				await operator.api(`STREAM.PURGE.empty_${purged}`)
				await operator.close()
			}
			const refused = {
				code: 'unavailable',
				message: new RegExp(`messages of the stream empty_${purged} were removed .*: restore copies of`),
			}
			const engine = await open()
			await engine.store.put(['a'], 1)
			for (const sequence of [1, 2, 3]) await engine.log.append('r', sequence - 1, [entry('r', sequence)])
			t.ok((await engine.log.prune(new Date(Date.now() + 60_000).toISOString(), async () => false)) > 0)
			await engine[Symbol.asyncDispose]()

			const again = await open()
			t.equal(await again.log.append('r', 3, [entry('r', 4)]).then(({ length }) => length), 1, 'a pruned log is valid')
			await purge()
			await again.log.append('r', 4, [entry('r', 5)]).catch(() => {})
			t.match(await again.lost, refused)
			await again[Symbol.asyncDispose]()
			await t.rejects(open(), refused, 'later writes do not hide it')

			// Removed while no gateway works.
			await purge()
			await t.rejects(open(), refused)
			const operator = await openClient({ url: cluster.url })
			for (const name of ['state', 'events']) await operator.api(`STREAM.DELETE.empty_${name}`)
			await operator.close()
			await (await open())[Symbol.asyncDispose]()
		},
	)

void t.test('the engine closes although the servers are gone', { skip: withoutNats() }, async (t) => {
	await using cluster = await startNats(1)
	const times = { renewMs: 100, holdMs: 1_000, takeMs: 1_500 }
	const engine = await openNats({ url: cluster.url, prefix: 'stops', replicas: 1, times })
	await engine.store.put(['a'], 1)
	await cluster.nodes[0]?.kill()
	const [put] = await Promise.allSettled([engine.store.put(['a'], 2), engine[Symbol.asyncDispose]()])
	t.match(put, { status: 'rejected', reason: { code: 'unavailable' } })
})

void t.test('a server that only accepts small messages is refused', { skip: withoutNats() }, async (t) => {
	await using cluster = await startNats(1, { max_payload: '1MB' })
	await t.rejects(openNats({ url: cluster.url, prefix: 'small', replicas: 1 }), {
		code: 'unavailable',
		message: /set "max_payload: 16MB"/,
	})
})

void t.test('a refused connection names the setting to correct', { skip: withoutNats() }, async (t) => {
	await using cluster = await startNats(1, { more: 'authorization { users: [{ user: u, password: right }] }' })
	const url = cluster.url.replace('nats://', 'nats://u:wrong@')
	const refused = (options: Partial<NatsOptions>, message: RegExp): Promise<unknown> =>
		t.rejects(openNats({ url, prefix: 'refused', replicas: 1, ...options }), { code: 'unavailable', message })
	await refused({}, /Authorization Violation; check the user and the password in the first address of store\.url/)
	await refused(
		{ credentials_file: join(cluster.folder, 'n1.conf') },
		/parse credentials; check store\.credentials_file/,
	)
	const [key, cert] = ['key.pem', 'cert.pem'].map((name) => JSON.stringify(join(fixtures, name)))
	await using encrypted = await startNats(1, { more: `tls { cert_file: ${cert}, key_file: ${key} }` })
	await refused({ url: encrypted.url }, /certificate.*; check store\.tls: ca_file must contain the certificate/)
	await refused(
		{ url: encrypted.url, tls: { ca_file: join(encrypted.folder, 'none.pem') } },
		/none\.pem.*; check store\.credentials_file and store\.tls/,
	)
})

void t.test('if no server listens, the error states that', async (t) => {
	await t.rejects(openNats({ url: 'nats://127.0.0.1:1', prefix: 'none', replicas: 1 }), {
		code: 'unavailable',
		message: /no server of the cluster can be used \(127\.0\.0\.1:1\).*; check store\.url and that the servers run/,
	})
})
