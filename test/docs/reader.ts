/**
 * Does what a page says, from its top, as somebody would who has a clone of the repository, one home folder and two
 * terminals. What a page cannot know is put in its place: the addresses of this gateway, ids that earlier steps showed, and
 * for bots the servers of test/support.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openBots } from './bots.ts'
import type { Place } from './place.ts'
import { openSvcHere } from './svc-here.ts'
import type { SvcHere } from './svc-here.ts'
import type { Step } from './page.ts'
import { WAIT_LIMIT_MS } from '../support/wait.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
/** For all commands of a block. */
const STEP_LIMIT_MS = 5 * WAIT_LIMIT_MS
const SETTLE_MS = 200
const OUTPUT_LIMIT = 256 * 1024
/** Of the clone, what a page's commands name. */
const shown = [
	'skills-examples',
	'docs',
	'core',
	'config',
	'plugins',
	'package.json',
	'package-lock.json',
	'node_modules',
]

export interface Done {
	code: number | null
	output: string
}

/** Reads one page: what earlier steps showed fills the placeholders of later ones. */
export class Reader implements AsyncDisposable {
	readonly #place: Place
	readonly #folder = mkdtempSync(join(tmpdir(), 'svc-docs-'))
	readonly #bots = openBots()
	readonly #watching: { child: Child; text: string }[] = []
	/** Names that the page gave to commands, for all that follows. */
	#aliases = ''
	#seen = ''
	#svc: SvcHere | undefined

	constructor(place: Place) {
		this.#place = place
		for (const name of shown) symlinkSync(join(root, name), join(this.#folder, name))
		const bin = join(this.#folder, 'bin')
		mkdirSync(bin)
		writeFileSync(join(bin, 'svc'), `#!/bin/sh\nexec ${process.execPath} ${root}core/svc.mjs "$@"\n`, { mode: 0o755 })
		// A refused request ends the step, as a reader who sees an error would.
		writeFileSync(join(bin, 'curl'), '#!/bin/sh\nPATH=${PATH#*:} exec curl --fail-with-body "$@"\n', { mode: 0o755 })
	}

	/** From now on `svc` is done by this process, and not by one of its own. */
	async hurry(): Promise<void> {
		this.#aliases = this.#aliases.replaceAll(/^alias svc=.*\n/gm, '')
		this.#svc = await openSvcHere(this.#place.home)
		writeFileSync(join(this.#folder, 'bin/svc'), this.#svc.program, { mode: 0o755 })
	}

	async follow(step: Exclude<Step, { kind: 'elsewhere' }>): Promise<Done> {
		if (step.kind === 'file') {
			const text = await this.#filled(step.text)
			const path = await this.#filled(step.path)
			const file = path.startsWith('/') ? path : join(this.#folder, path)
			mkdirSync(dirname(file), { recursive: true })
			return this.#place.changed(file, async () => {
				writeFileSync(file, text)
				return { code: 0, output: '' }
			})
		}
		let output = ''
		for (const part of partsOf(step.text)) {
			let text = await this.#filled(part)
			// A run that was started just before may not have asked yet; a person would list its questions again.
			for (let again = 0; again < LIST_LIMIT && text.includes('QUESTION_ID'); again++) {
				await this.#run('svc questions list', '')
				text = await this.#filled(part)
			}
			const done = await this.#command(step, text)
			output += done.output
			if (done.code !== 0) return { code: done.code, output }
		}
		return { code: 0, output }
	}

	async #command({ types = '', answers }: CommandStep, text: string): Promise<Done> {
		const isKept = (line: string): boolean => line.startsWith('alias ') && !(this.#svc && line.startsWith('alias svc='))
		for (const line of text.split('\n')) if (isKept(line)) this.#aliases += `${line}\n`
		if (/^npm start$/m.test(text)) return this.#place.start(this.#environment())
		const left = /\b[A-Z]+_ID\b(?!=)/.exec(text)
		if (left) return { code: 1, output: `nothing that the page showed before fills ${left[0]}` }
		if (/\bcurl -\w*N\b|\bevents tail\b(?!.*--count)/.test(text)) return this.#watch(text)
		// What a script must say, since it cannot be asked.
		const consented = answers === 'yes' ? text.replaceAll(/^svc .*$/gm, '$& --yes') : text
		const aimed = await this.#bots.aimedAt(consented, types)
		const run = (): Promise<Done> => this.#run(aimed.text, aimed.typed)
		if (!/\bsvc (config (un)?set|init)\b/.test(text)) return run()
		return this.#place.changed(join(this.#place.home, 'config/gateway.yaml'), run)
	}

	/** Settles once nothing runs in the second terminal any more. */
	async idle(): Promise<void> {
		await Promise.all(this.#watching.map(({ child }) => child.ended))
	}

	/** Ends what runs in the second terminal. Answers with what went wrong there. */
	async end(): Promise<string[]> {
		const wrong: string[] = []
		for (const { child, text } of this.#watching.splice(0)) {
			if (child.code !== undefined && child.code !== 0) wrong.push(`${text}\n${child.output()}`)
			if (child.output() === '') wrong.push(`${text}\nshowed nothing`)
			child.kill()
			await child.ended
		}
		return wrong
	}

	async [Symbol.asyncDispose](): Promise<void> {
		await this.end()
		await this.#svc?.[Symbol.asyncDispose]()
		await this.#place.stop()
		await this.#bots.stop()
		rmSync(this.#folder, { recursive: true, force: true })
	}

	async #run(text: string, typed: string): Promise<Done> {
		const child = this.#spawn(text, typed)
		const timer = setTimeout(child.kill, STEP_LIMIT_MS)
		const code = await child.ended
		clearTimeout(timer)
		this.#seen = `${this.#seen}\n${child.output()}`.slice(-OUTPUT_LIMIT)
		return { code, output: child.output() }
	}

	/** What runs in a second terminal goes on while the page is read; the page is read on once it has said something. */
	async #watch(text: string): Promise<Done> {
		const child = this.#spawn(text, '')
		this.#watching.push({ child, text })
		const late = setTimeout(child.kill, WAIT_LIMIT_MS)
		await Promise.race([child.spoke, child.ended])
		clearTimeout(late)
		// What it said may be why it ends.
		await Promise.race([child.ended, delay(SETTLE_MS)])
		return { code: child.code ?? 0, output: child.output() }
	}

	#spawn(text: string, typed: string): Child {
		const keyboard = join(this.#folder, 'typed')
		writeFileSync(keyboard, typed)
		// A file, which svc-here.ts can open as well: Node's pipes are sockets.
		const stdin = openSync(keyboard, 'r')
		const script = `shopt -s expand_aliases\n${this.#aliases}${text}`
		const child = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
			cwd: this.#folder,
			detached: true, // a group of its own, to be ended as a whole
			stdio: [stdin, 'pipe', 'pipe'],
			env: this.#environment(),
		})
		closeSync(stdin)
		let output = ''
		const spoke = Promise.withResolvers<void>()
		for (const stream of [child.stdout, child.stderr])
			stream?.on('data', (data: Buffer) => {
				output = (output + data.toString()).slice(-OUTPUT_LIMIT)
				spoke.resolve()
			})
		const made: Child = {
			output: () => output,
			spoke: spoke.promise,
			ended: new Promise((resolve) => {
				child.on('close', (code) => resolve((made.code = code)))
			}),
			code: undefined,
			kill() {
				try {
					if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
				} catch {
					// It is gone already.
				}
			},
		}
		return made
	}

	#environment(): NodeJS.ProcessEnv {
		return {
			// A gateway of this machine may have the default ports.
			SVC_PORT: '0',
			SVC_LEGACY_PORT: '0',
			PATH: `${join(this.#folder, 'bin')}:${dirname(process.execPath)}:${process.env.PATH}`,
			HOME: this.#folder,
			SVC_HOME: this.#place.home,
			NO_COLOR: '1',
			NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/compile'),
		}
	}

	/** The page's addresses are this gateway's; a placeholder such as SKILL_ID is the newest `skill_id`, else `id`, that was shown. */
	async #filled(text: string): Promise<string> {
		const { url, legacyUrl, home } = this.#place
		const local = text
			.replaceAll('http://127.0.0.1:3000', url)
			.replaceAll('http://127.0.0.1:17890', legacyUrl)
			.replaceAll(/(?<=^|[\s'"=])~\/\.svc\b/gm, home)
			.replaceAll(new RegExp(placeholder, 'g'), (name) => this.#newest(name) ?? name)
		if (local.includes(FIXED_PORT)) return local.replaceAll(FIXED_PORT, String(await freePort()))
		return local.includes(PAIRING_CODE) ? local.replaceAll(PAIRING_CODE, await this.#bots.code()) : local
	}

	#newest(name: string): string | undefined {
		const fields = [name.toLowerCase(), ...(name.endsWith('_ID') ? ['id'] : [])]
		for (const field of fields) {
			const compact = [...this.#seen.matchAll(new RegExp(`"${field}":\\s*"([^"]+)"`, 'g'))].at(-1)
			const found = [...this.#seen.matchAll(new RegExp(`\\b${field}"?:?\\s+"?([\\w:-]{6,})`, 'g'))].at(-1)
			const value = (compact ?? found)?.[1]
			if (value !== undefined) return value
		}
		return cellUnder(name.replaceAll('_', ' '), this.#seen)
	}
}

async function freePort(): Promise<number> {
	const server = createServer().listen(0, '127.0.0.1')
	await once(server, 'listening')
	const { port } = server.address() as AddressInfo
	server.close()
	await once(server, 'close')
	return port
}

/** In the table that was shown last: what stands first below a heading. */
function cellUnder(heading: string, shown: string): string | undefined {
	const lines = shown.split('\n')
	const at = lines.findLastIndex((line) => line.includes(heading))
	const column = lines[at]?.indexOf(heading) ?? -1
	return column < 0 ? undefined : /^\S+/.exec(lines[at + 1]?.slice(column) ?? '')?.[0]
}

/** A block may use what its own first lines have shown: it is done in parts, each of which begins with such a line. */
function partsOf(text: string): string[] {
	const parts: string[] = []
	const part: string[] = []
	for (const line of text.split('\n')) {
		const goesOn = part.length === 0 || /(\\|\||&&)$/.test(part.at(-1) ?? '')
		if (!goesOn && placeholder.test(line) && !/^\s/.test(line)) parts.push(part.splice(0).join('\n'))
		part.push(line)
	}
	return [...parts, part.join('\n')]
}

const placeholder = /(?<![A-Z_$"{.])\b(?:[A-Z]+_ID|DIGEST|TOKEN|CODE)\b(?![A-Z_="])/

type CommandStep = Extract<Step, { kind: 'command' }>

/** How often the questions are listed until one is there. */
const LIST_LIMIT = 30

/** The one that all pages show. */
const PAIRING_CODE = '7K3N9QXM'
/** Of the channel that docs/writing-a-channel.md makes. */
const FIXED_PORT = '7007'

interface Child {
	output(): string
	/** Settles with its first output. */
	spoke: Promise<void>
	ended: Promise<number | null>
	/** Undefined while it runs. */
	code: number | null | undefined
	kill(): void
}
