/** Local chat platforms for the bots of a page, and a person who sends /start to them. */
import { startDiscord } from '../support/discord.ts'
import { startTelegram } from '../support/telegram.ts'
import { eventually } from '../support/wait.ts'

export interface Bots {
	/** Starts a platform for a command that adds a channel, and inserts its address into the command and its token as input. */
	redirected(text: string, typed: string): Promise<{ text: string; typed: string }>
	/** The pairing code with which the latest bot answers /start. */
	code(): Promise<string>
	stop(): Promise<void>
}

interface Bot {
	url: string
	token: string
	answerToStart(): Promise<string>
	stop(): Promise<void>
}

const platforms: Record<string, () => Promise<Bot>> = { telegram, discord }
const CODE = /`([0-9A-Z]{8})`/

export function openBots(): Bots {
	const bots: Bot[] = []
	return {
		async redirected(text, typed) {
			const [, platform = ''] = /\bsvc channels add (\w+)/.exec(text) ?? []
			const bot = await platforms[platform]?.()
			if (!bot) return { text, typed }
			bots.push(bot)
			return { text: text.replace(`channels add ${platform}`, `$& --api-root ${bot.url}`), typed: bot.token }
		},
		async code() {
			const answer = await bots.at(-1)?.answerToStart()
			const [, code] = CODE.exec(answer ?? '') ?? []
			if (code === undefined) throw new Error(`the bot sent no code, but ${JSON.stringify(answer)}`)
			return code
		},
		async stop() {
			for (const bot of bots) await bot.stop()
		},
	}
}

async function telegram(): Promise<Bot> {
	const server = await startTelegram()
	return {
		url: server.url,
		token: server.token,
		async answerToStart() {
			const chat = server.person(42, 'Ada')
			server.say(chat, '/start')
			return (await server.waitFor((message) => message.chat.id === chat.id)).text
		},
		stop: () => server.stop(),
	}
}

async function discord(): Promise<Bot> {
	const server = await startDiscord()
	return {
		url: server.url,
		token: server.token,
		async answerToStart() {
			const chat = server.addDirect()
			server.say(chat, '/start')
			const first = await eventually(() => server.written(chat)[0])
			return first?.content ?? ''
		},
		stop: () => server.stop(),
	}
}
