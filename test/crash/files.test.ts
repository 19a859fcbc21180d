/**
 * kill -9 while the file of a message is being downloaded, and soon after. Meanwhile other chats of the bot get answers. Afterwards each
 * message has one run and one answer, in the order of its chat.
 *
 * CHANNEL_KILLS sets the number of kills after the file has become available (1).
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import type { Test } from 'tap'
import { startDiscord } from '../support/discord.ts'
import { png } from '../support/files.ts'
import { makeHome, send } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import { ongoingRunsEnd } from '../support/restarts.ts'
import { startTelegram } from '../support/telegram.ts'
import { eventually } from '../support/wait.ts'

const KILLS = Number(process.env.CHANNEL_KILLS ?? 1)
/** A kill happens within this time after the file was requested. */
const WINDOW_MS = 150
const FILE = 'photo.png'

interface Platform {
	api_root: string
	token: string
	files: Map<string, Buffer | 'never'>
	/** The file names of all requests so far. */
	loads: string[]
	chat(): Person
	stop(): Promise<void>
}

interface Person {
	id: string
	send(text: string): void
	sendPhoto(text: string): void
	/** The texts of the bot's messages in the chat. */
	received(): string[]
}

async function telegram(): Promise<Platform> {
	const server = await startTelegram()
	let people = 0
	return {
		api_root: server.url,
		token: server.token,
		files: server.files,
		loads: server.loads,
		chat() {
			const chat = server.person(++people, `P${people}`)
			return {
				id: String(chat.id),
				send: (text) => void server.say(chat, text),
				sendPhoto: (caption) => void server.say(chat, '', { text: undefined, caption, photo: [{ file_id: FILE }] }),
				received: () => server.messages(chat).map(({ text }) => text),
			}
		},
		stop: server.stop,
	}
}

async function discord(): Promise<Platform> {
	const server = await startDiscord()
	const file = { id: '1', filename: FILE, content_type: 'image/png', url: `${server.url}/files/${FILE}` }
	return {
		api_root: server.url,
		token: server.token,
		files: server.files,
		loads: server.loads,
		chat() {
			const chat = server.addChannel()
			return {
				id: chat.id,
				send: (text) => void server.say(chat, text, { mention: true }),
				sendPhoto: (text) => void server.say(chat, text, { mention: true, more: { attachments: [file] } }),
				received: () => server.written(chat).map(({ content }) => content),
			}
		},
		stop: () => server.stop(),
	}
}

async function testPlatform(t: Test, type: string, platform: Platform): Promise<void> {
	t.teardown(() => platform.stop())
	const home = makeHome({ config: 'server: { shutdown_grace_s: 0 }\nchannels: { retry_max_s: 1 }\n' }, t)
	let gateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	const request = async (method: string, path: string, body?: unknown) => {
		const reply = await send(`${gateway.url}/v1/${path}`, method, { body })
		if (reply.status >= 300) throw new Error(`${path}: ${JSON.stringify(reply.body)}`)
		return reply.body
	}
	await request('POST', 'vault/secrets', { name: 'BOT', value: platform.token })
	const config = { api_root: platform.api_root }
	const { id: channel_id } = await request('POST', 'channels', { type, bot_token_ref: 'BOT', config })
	const [slow, other] = [platform.chat(), platform.chat()]
	for (const [name, { id }] of [
		['slow', slow],
		['other', other],
	] as const) {
		await request('POST', 'agents', { name })
		await request('POST', 'channels/pair', { agent_id: name, channel_id, external_chat_id: id })
	}
	// Discord does not deliver messages from before the first connection.
	await eventually(
		() => request('GET', `channels/${channel_id}`),
		({ connection }) => connection === 'connected',
	)
	const answersTo = ({ received }: Person, text: string): number =>
		received().filter((message) => message.includes(text)).length
	const waitForAnswer = (person: Person, text: string) =>
		eventually(
			() => answersTo(person, text),
			(count) => count > 0,
		)
	/** Waits for one more request for a file. */
	const waitForDownload = (before: number) =>
		eventually(
			() => platform.loads.length,
			(count) => count > before,
		)

	platform.files.set(FILE, 'never')
	slow.sendPhoto('look.')
	await waitForDownload(0)
	slow.send('and this?')
	other.send('hello.')
	await waitForAnswer(other, 'hello.')
	t.equal(answersTo(slow, 'and this?'), 0, 'later messages of the same chat wait')
	await gateway.kill()

	gateway = await spawnGateway(home)
	await waitForDownload(1)
	other.send('hello again.')
	await waitForAnswer(other, 'hello again.')
	for (let kill = 1; kill <= KILLS; kill++) {
		await gateway.kill()
		platform.files.set(FILE, png(FILE))
		const before = platform.loads.length
		gateway = await spawnGateway(home)
		// Later kills may happen before the next request for the file, or after the last one.
		if (kill === 1) await waitForDownload(before)
		// Otherwise the next kills may hit the same step of a run, which then fails with restart_loop.
		if (kill % 2 === 0) await ongoingRunsEnd(gateway.url)
		await pause(Math.random() * WINDOW_MS)
	}
	await gateway.kill()
	gateway = await spawnGateway(home)
	await waitForAnswer(slow, 'look.')
	await waitForAnswer(slow, 'and this?')
	for (const [person, text] of [
		[slow, 'look.'],
		[slow, 'and this?'],
		[other, 'hello.'],
		[other, 'hello again.'],
	] as const)
		t.equal(answersTo(person, text), 1, `${text} is answered once`)
	const runs: { prompt: string; attachments?: { name?: string; media_type: string }[] }[] = await request(
		'GET',
		'agents/slow/runs',
	)
	t.strictSame(
		runs.map(({ prompt }) => prompt.replace(/^Message from .*\n\n/, '')),
		['and this?', 'look.'],
		'one run for each message, in order',
	)
	t.match(runs[1]?.attachments, [{ media_type: 'image/png' }])
	t.equal(gateway.errors(), '', 'the last gateway printed no errors')
}

t.jobs = 2
const timeout = 300_000 + KILLS * 10_000
void t.test('chat_a', { timeout }, async (t) => testPlatform(t, 'chat_a', await telegram()))
void t.test('chat_b', { timeout }, async (t) => testPlatform(t, 'chat_b', await discord()))
