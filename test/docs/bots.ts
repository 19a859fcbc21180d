/** The platforms at which a page's bots are, and somebody there who presses Start. */
import { startDiscord } from '../support/discord.ts'
import { startTelegram } from '../support/telegram.ts'
import { eventually } from '../support/wait.ts'

export interface Bots {
	/** A command that adds a channel gets the address of a server here, and what is typed there that server's token. */
	aimedAt(text: string, typed: string): Promise<{ text: string; typed: string }>
	/** The code with which the bot that was added last answers /start. */
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
		async aimedAt(text, typed) {
			const [, platform = ''] = /\bsvc channels add (\w+)/.exec(text) ?? []
			const bot = await platforms[platform]?.()
			if (!bot) return { text, typed }
			bots.push(bot)
			return { text: text.replace(`channels add ${platform}`, `$& --api-root ${bot.url}`), typed: bot.token }
		},
		async code() {
			const answer = await bots.at(-1)?.answerToStart()
			const [, code] = CODE.exec(answer ?? '') ?? []
			if (code === undefined) throw new Error(`the bot gave no code; it said ${JSON.stringify(answer)}`)
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
