import t from 'tap'
import { openMemory } from '../../../support/memory-engine.ts'
import type { Context } from '../../../../core/plugin.ts'
import type { Key } from '../../../../core/store/ports.ts'
import { openSessions } from '../../../../plugins/channels/dialogue/sessions.ts'
import type { BoundChat } from '../../../../plugins/channels/parts.ts'

const agent = { name: 'ada', uid: 'u-1' }
const bound: BoundChat = { binding_id: 'b', agent, external_chat_id: 'g', created_at: '2026-01-01T00:00:00.000Z' }
const [chat, thread, room] = [{ id: 'g' }, { id: 'g', thread_id: '5' }, { id: 'in-g' }] as const

void t.test('each chat has its own session, which survives a restart', async (t) => {
	const engine = openMemory()
	t.teardown(() => engine[Symbol.asyncDispose]())
	const { store } = engine
	/** Conversations that have runs. */
	const alive = new Set<string>()
	/** Conversations whose short-term notes were deleted. */
	const forgotten: string[] = []
	const services = {
		agents: {
			async *list() {
				yield agent
			},
		},
		runs: {
			history: async (_: unknown, name: string) => (alive.has(name) ? [{}] : []),
			forgetNotes: async (_: unknown, name: string) => void forgotten.push(name),
		},
	}
	const use = ((name: 'agents' | 'runs') => services[name]) as unknown as Context['use']
	const start = () => openSessions({ store, use, signal: new AbortController().signal })
	const sessions = start()
	const names = async (of = sessions): Promise<string[]> =>
		Promise.all([chat, thread, room].map((one) => of.current('c', bound, one)))

	const first = await names()
	t.strictSame(first, ['channel:b', 'channel:b:thread-5', 'channel:b:in-g'])
	const seen: Key = ['agent:u-1', 'seen', '1']
	await sessions.begin('c', bound, thread, [{ key: seen, value: true, expect: null }])
	t.strictSame(forgotten, [first[1]], 'its notes are deleted')
	const [same, other, alsoSame] = await names()
	t.strictSame([same, alsoSame], [first[0], first[2]])
	t.match(other, /^channel:b:thread-5:[0-9a-f-]{36}$/)
	t.strictSame(await names(start()), [same, other, alsoSame], 'after a restart')
	await t.rejects(sessions.begin('c', bound, chat, [{ key: seen, value: true, expect: null }]), { code: 'conflict' })
	t.equal((await names())[0], same, 'a message that was already handled begins no session')

	const later = new Date(Date.now() + 1_000).toISOString()
	for (const name of [first[1], other]) {
		alive.add(name ?? '')
		await sessions.prune(later)
		t.equal((await names())[1], other, 'an earlier session is not resumed while its runs exist')
		alive.clear()
	}
	await sessions.prune('2026-01-01T00:00:00.000Z')
	t.equal((await names())[1], other, 'a recent session is kept')
	await sessions.prune(later)
	t.strictSame(await names(), first)
	t.strictSame(await names(start()), first)
})
