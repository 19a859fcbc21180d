/** What a chat sees of a run that takes long, and what becomes of messages that come meanwhile. */
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { startHeldModel } from '../../support/held-model.ts'
import type { HeldCall } from '../../support/held-model.ts'
import { addRoom, bind, roomFiles, startRoom } from '../../support/room.ts'
import type { ShownMessage } from '../../support/room.ts'
import { follow } from '../../support/runs.ts'
import type { Followed } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

/** Its tool ends when the test says so. */
const slow = `export default { name: 'slow', start(ctx) {
	ctx.tools(() => [{ name: 'slow', description: 'Takes long.', run: () => new Promise((resolve) => (globalThis.slowCalls ??= []).push(resolve)) }])
} }`
const [room, held] = await Promise.all([startRoom(), startHeldModel()])
const gateway = await startGateway({
	config: `plugins: { room: true, slow: true }
default_provider: held
providers: { held: { kind: openai, base_url: '${held.url}', api_key: test, model: test } }
`,
	files: { ...roomFiles(), 'plugins/slow/index.js': slow },
})
t.teardown(async () => {
	await gateway.stop()
	await Promise.all([room.stop(), held.stop()])
})
const slowCalls: ((value: unknown) => void)[] = []
Object.assign(globalThis, { slowCalls })
const merging = await addRoom(gateway, room, 'room', { during_run: 'merged' })

let chats = 0

interface Chat {
	agent: Followed
	say(text: string): void
	/** What the bot has said since the chat was bound. */
	said(): ShownMessage[]
	hears(count: number): Promise<ShownMessage[]>
}

async function chatOn(t: Test, type: string, channel: string): Promise<Chat> {
	const [id, name] = [`busy-${++chats}`, `busy-agent-${chats}`]
	const agent = await follow(t, gateway, name)
	room.place(id, type)
	await bind(gateway, channel, name, id)
	await room.shows(id, 1)
	return {
		agent,
		say: (text) => void room.say(id, text),
		said: () => room.shown(id).slice(1),
		hears: async (count) => (await room.shows(id, count + 1)).slice(1),
	}
}

void t.test('messages that come during a run share the next one, where the channel says so', async (t) => {
	const chat = await chatOn(t, 'room', merging)
	chat.say('one')
	const first = await held.called('one')
	for (const text of ['two', 'three', '/whoami']) chat.say(text)
	t.match((await chat.hears(1))[0]?.text, /^chat/, 'the messages before it were accepted')
	first.answer('The first.')
	const second = await held.called('two\n\nthree')
	chat.say('four')
	chat.say('/whoami')
	await chat.hears(3)
	second.answer('Both.')
	const third = await held.called('four')
	third.answer('The last.')
	const said = (await chat.hears(5)).map(({ text }) => text).filter((text) => !text.startsWith('chat'))
	t.strictSame(said, ['Well, The first.', 'Well, Both.', 'Well, The last.'])
	const received = chat.agent.stream.events.filter(({ event_type }) => event_type === 'channel.message_received')
	t.strictSame(
		received.map(({ run_id }) => received.findIndex((one) => one.run_id === run_id)),
		[0, 1, 1, 3],
		'each message is in the log of its run',
	)

	chat.say('five')
	await held.called('five')
	for (const text of ['six', 'seven', '/stop']) chat.say(text)
	t.equal((await chat.hears(6))[5]?.text, 'Stopped.')
	chat.say('eight')
	;(await held.called('eight')).answer('Here.')
	t.equal((await chat.hears(7))[6]?.text, 'Well, Here.')
	const prompts = (await chat.agent.call('runs')).body.map(({ prompt }: { prompt: string }) => prompt)
	t.strictSame(prompts, ['eight', 'five', 'four', 'two\n\nthree', 'one'], 'what was dropped has no run')
})

void t.test('a run that takes long shows what it calls, in the message that becomes the answer', async (t) => {
	const [shows, hides] = await Promise.all([
		chatOn(t, 'room_edit', await addRoom(gateway, room, 'room_edit')),
		chatOn(t, 'room_grow', await addRoom(gateway, room, 'room_grow', { progress: false })),
	])
	const begin = async (chat: Chat, text: string): Promise<void> => {
		chat.say(text)
		;(await held.called(text)).callTool('slow', '{"secret":"of the arguments"}')
	}
	await Promise.all([begin(shows, 'show it'), begin(hides, 'hide it')])
	await room.until(() => shows.said()[0]?.text.endsWith('Working: `slow` …') ?? false, 'the call')
	await room.until(() => slowCalls.length === 2, 'both calls')
	for (const end of slowCalls) end('done')
	const [shown, hidden] = await Promise.all([held.called('show it', 2), held.called('hide it', 2)])
	shown.answer('found.')
	hidden.answer('found.')
	for (const chat of [shows, hides]) await room.until(() => chat.said()[0]?.text === 'Well, found.', 'the answer')
	t.equal(shows.said().length, 1)
	const before = [...(shows.said()[0]?.before ?? []), ...(hides.said()[0]?.before ?? [])]
	t.equal(before.filter((text) => text.includes('Working')).length > 0, true)
	t.notOk(before.some((text) => text.includes('arguments')))
	t.notOk(hides.said()[0]?.before.some((text) => text.includes('Working')))
})

void t.test('/stop and /new stop sub-agents that no run waits for', async (t) => {
	const [chat, other] = [await chatOn(t, 'room', merging), await chatOn(t, 'room', merging)]
	let heard = 0
	const spawn = async (task: string, { say, hears } = chat): Promise<HeldCall> => {
		say(`begin ${task}`)
		const begun = await held.called(`begin ${task}`)
		begun.callTool('subagent_spawn', JSON.stringify({ prompt: task, wait: false }))
		;(await held.called(`begin ${task}`, 2)).answer('Begun.')
		const count = hears === chat.hears ? ++heard : 1
		t.equal((await hears(count))[count - 1]?.text, 'Well, Begun.')
		return held.called(task)
	}
	const elsewhere = await spawn('task elsewhere', other)
	for (const [command, says] of [
		['/stop', 'Stopped.'],
		['/new', 'Stopped. A new conversation begins: what was said before is forgotten.'],
	] as const) {
		const outer = await spawn(`outer of ${command}`)
		outer.callTool('subagent_spawn', JSON.stringify({ prompt: `inner of ${command}`, wait: false }))
		const [inner, again] = await Promise.all([
			held.called(`inner of ${command}`),
			held.called(`outer of ${command}`, 2),
		])
		chat.say(command)
		t.equal((await chat.hears(++heard))[heard - 1]?.text, says)
		await Promise.all([inner.hungUp, again.hungUp])
	}
	chat.say('/stop')
	t.equal((await chat.hears(++heard))[heard - 1]?.text, 'There is nothing to stop.')
	t.ok(elsewhere.open, 'those of other chats continue')
	elsewhere.answer('found it.')
	const result = await eventually(() => held.calls.find(({ prompt }) => prompt.includes('<subagent_result')))
	result?.answer('it was found.')
	t.equal((await other.hears(2))[1]?.text, 'Well, it was found.')
})
