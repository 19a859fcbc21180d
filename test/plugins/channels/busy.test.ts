/** What a chat shows of a long run, and how messages that arrive during a run are handled. */
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import type { ManualCall } from '../../support/manual-model.ts'
import { providersAt } from '../../support/providers.ts'
import { addRoomChannel, bindChat, roomPluginFiles, startRoomPlatform } from '../../support/room-platform.ts'
import type { ShownMessage } from '../../support/room-platform.ts'
import { follow } from '../../support/runs.ts'
import type { Followed } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

/** Its tool returns when the test resolves the call in `slowCalls`. */
const slow = `export default { name: 'slow', start(ctx) {
	ctx.tools(() => [{ name: 'slow', description: 'Takes long.', run: () => new Promise((resolve) => (globalThis.slowCalls ??= []).push(resolve)) }])
} }`
const [room, held] = await Promise.all([startRoomPlatform(), startManualModel()])
const gateway = await startGateway({
	config: `plugins: { room: true, slow: true }
default_provider: held
${providersAt({ held: held.url })}`,
	files: { ...roomPluginFiles(), 'plugins/slow/index.js': slow },
})
t.teardown(async () => {
	await gateway.stop()
	await Promise.all([room.stop(), held.stop()])
})
const slowCalls: ((value: unknown) => void)[] = []
Object.assign(globalThis, { slowCalls })
const merging = await addRoomChannel(gateway, room, 'room', { during_run: 'merged' })

let chats = 0

interface Chat {
	agent: Followed
	say(text: string): void
	/** The bot's messages since the chat was bound. */
	said(): ShownMessage[]
	/** Waits for at least `count` of these messages, and returns them all. */
	answers(count: number): Promise<ShownMessage[]>
}

async function chatOn(t: Test, type: string, channel: string): Promise<Chat> {
	const [id, name] = [`busy-${++chats}`, `busy-agent-${chats}`]
	const agent = await follow(t, gateway, name)
	room.place(id, type)
	await bindChat(gateway, channel, name, id)
	await room.shows(id, 1)
	return {
		agent,
		say: (text) => void room.say(id, text),
		said: () => room.shown(id).slice(1),
		answers: async (count) => (await room.shows(id, count + 1)).slice(1),
	}
}

void t.test('with during_run: merged, messages that arrive during a run share the next one', async (t) => {
	const chat = await chatOn(t, 'room', merging)
	chat.say('one')
	const first = await held.called('one')
	for (const text of ['two', 'three', '/whoami']) chat.say(text)
	t.match((await chat.answers(1))[0]?.text, /^chat/, 'the messages before it were accepted')
	first.answer('The first.')
	const second = await held.called('two\n\nthree')
	chat.say('four')
	chat.say('/whoami')
	await chat.answers(3)
	second.answer('Both.')
	const third = await held.called('four')
	third.answer('The last.')
	const said = (await chat.answers(5)).map(({ text }) => text).filter((text) => !text.startsWith('chat'))
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
	t.equal((await chat.answers(6))[5]?.text, 'Stopped.')
	chat.say('eight')
	;(await held.called('eight')).answer('Here.')
	t.equal((await chat.answers(7))[6]?.text, 'Well, Here.')
	const prompts = (await chat.agent.call('runs')).body.map(({ prompt }: { prompt: string }) => prompt)
	t.strictSame(prompts, ['eight', 'five', 'four', 'two\n\nthree', 'one'], 'dropped messages have no run')
})

void t.test('a long run shows its tool calls in the message that becomes the answer', async (t) => {
	const [withProgress, withoutProgress] = await Promise.all([
		chatOn(t, 'room_edit', await addRoomChannel(gateway, room, 'room_edit')),
		chatOn(t, 'room_grow', await addRoomChannel(gateway, room, 'room_grow', { progress: false })),
	])
	const begin = async (chat: Chat, text: string): Promise<void> => {
		chat.say(text)
		;(await held.called(text)).callTool('slow', '{"secret":"of the arguments"}')
	}
	await Promise.all([begin(withProgress, 'show it'), begin(withoutProgress, 'hide it')])
	await room.until(() => withProgress.said()[0]?.text.endsWith('Working: `slow` …') ?? false, 'the call')
	await room.until(() => slowCalls.length === 2, 'both calls')
	for (const end of slowCalls) end('done')
	const [shown, hidden] = await Promise.all([held.called('show it', 2), held.called('hide it', 2)])
	shown.answer('found.')
	hidden.answer('found.')
	for (const chat of [withProgress, withoutProgress])
		await room.until(() => chat.said()[0]?.text === 'Well, found.', 'the answer')
	t.equal(withProgress.said().length, 1)
	const before = [...(withProgress.said()[0]?.before ?? []), ...(withoutProgress.said()[0]?.before ?? [])]
	t.equal(before.filter((text) => text.includes('Working')).length > 0, true)
	t.notOk(before.some((text) => text.includes('arguments')))
	t.notOk(withoutProgress.said()[0]?.before.some((text) => text.includes('Working')))
})

void t.test('/stop and /new stop sub-agents that no run waits for', async (t) => {
	const [chat, other] = [await chatOn(t, 'room', merging), await chatOn(t, 'room', merging)]
	let received = 0
	const spawn = async (task: string, { say, answers } = chat): Promise<ManualCall> => {
		say(`begin ${task}`)
		const begun = await held.called(`begin ${task}`)
		begun.callTool('subagent_spawn', JSON.stringify({ prompt: task, wait: false }))
		;(await held.called(`begin ${task}`, 2)).answer('Begun.')
		const count = answers === chat.answers ? ++received : 1
		t.equal((await answers(count))[count - 1]?.text, 'Well, Begun.')
		return held.called(task)
	}
	const elsewhere = await spawn('task elsewhere', other)
	for (const [command, answer] of [
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
		t.equal((await chat.answers(++received))[received - 1]?.text, answer)
		await Promise.all([inner.hungUp, again.hungUp])
	}
	chat.say('/stop')
	t.equal((await chat.answers(++received))[received - 1]?.text, 'There is nothing to stop.')
	t.ok(elsewhere.open, 'sub-agents of other chats continue')
	elsewhere.answer('found it.')
	const result = await eventually(() => held.calls.find(({ prompt }) => prompt.includes('<subagent_result')))
	result?.answer('it was found.')
	t.equal((await other.answers(2))[1]?.text, 'Well, it was found.')
})
