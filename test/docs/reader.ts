/**
 * Executes a page from its top, as a reader with a clone of the repository, one home and two terminals would. It replaces what the page
 * cannot contain: the addresses of this gateway, ids that earlier steps printed, and the platforms of bots by the servers of
 * test/support.
 */
import { spawn } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openBots } from './bots.ts'
import type { Place } from './place.ts'
import { openSvcHere } from './svc-here.ts'
import type { SvcHere } from './svc-here.ts'
import type { Step } from './page.ts'
import { freePort } from '../support/free-ports.ts'
import { WAIT_LIMIT_MS } from '../support/wait.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
/** The time limit for all commands of a block. */
const STEP_LIMIT_MS = 5 * WAIT_LIMIT_MS
const SETTLE_MS = 200
const OUTPUT_LIMIT = 256 * 1024
/** The parts of the clone that commands of pages use. */
const linked = [
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

/** Executes one page. The output of earlier steps provides the values of placeholders in later ones. */
export class Reader implements AsyncDisposable {
	readonly #place: Place
	readonly #folder = mkdtempSync(join(tmpdir(), 'svc-docs-'))
	readonly #bots = openBots()
	readonly #watching: { child: Child; text: string }[] = []
	/** The aliases that the page has defined, for all later commands. */
	#aliases = ''
	#seen = ''
	#svc: SvcHere | undefined

	constructor(place: Place) {
		this.#place = place
		for (const name of linked) symlinkSync(join(root, name), join(this.#folder, name))
		const bin = join(this.#folder, 'bin')
		mkdirSync(bin)
		writeFileSync(join(bin, 'svc'), `#!/bin/sh\nexec ${process.execPath} ${root}core/svc.mjs "$@"\n`, { mode: 0o755 })
		// A refused request fails the step.
		writeFileSync(join(bin, 'curl'), '#!/bin/sh\nPATH=${PATH#*:} exec curl --fail-with-body "$@"\n', { mode: 0o755 })
	}

	/** From now on, this process executes `svc`, which is faster than starting one for each command. */
	async runSvcHere(): Promise<void> {
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
			// A run that has just started may not have asked its question yet, so the list is read again.
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
		const unfilled = /\b[A-Z]+_ID\b(?!=)/.exec(text)
		if (unfilled) return { code: 1, output: `no earlier output of the page has a value for ${unfilled[0]}` }
		if (/\bcurl -\w*N\b|\bevents tail\b(?!.*--count)/.test(text)) return this.#watch(text)
		// Without a terminal, svc cannot ask for confirmation.
		const confirmed = answers === 'yes' ? text.replaceAll(/^svc .*$/gm, '$& --yes') : text
		const redirected = await this.#bots.redirected(confirmed, types)
		const run = (): Promise<Done> => this.#run(redirected.text, redirected.typed)
		if (!/\bsvc (config (un)?set|init)\b/.test(text)) return run()
		return this.#place.changed(join(this.#place.home, 'config/gateway.yaml'), run)
	}

	/** Settles once all commands in the second terminal have ended. */
	async idle(): Promise<void> {
		await Promise.all(this.#watching.map(({ child }) => child.ended))
	}

	/** Ends the commands in the second terminal. Returns those that failed or printed nothing, with their output. */
	async end(): Promise<string[]> {
		const wrong: string[] = []
		for (const { child, text } of this.#watching.splice(0)) {
			if (child.code !== undefined && child.code !== 0) wrong.push(`${text}\n${child.output()}`)
			if (child.output() === '') wrong.push(`${text}\nprinted nothing`)
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

	/** Runs a command in the second terminal while the page continues. Settles once it has printed something or ended. */
	async #watch(text: string): Promise<Done> {
		const child = this.#spawn(text, '')
		this.#watching.push({ child, text })
		const late = setTimeout(child.kill, WAIT_LIMIT_MS)
		await Promise.race([child.printed, child.ended])
		clearTimeout(late)
		// Its first output may be an error, after which it ends.
		await Promise.race([child.ended, delay(SETTLE_MS)])
		return { code: child.code ?? 0, output: child.output() }
	}

	#spawn(text: string, typed: string): Child {
		const keyboard = join(this.#folder, 'typed')
		writeFileSync(keyboard, typed)
		// A file, since svc-here.ts must be able to open it: Node's pipes are sockets.
		const stdin = openSync(keyboard, 'r')
		const script = `shopt -s expand_aliases\n${this.#aliases}${text}`
		const child = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
			cwd: this.#folder,
			detached: true, // a separate process group, so that all its processes can be ended
			stdio: [stdin, 'pipe', 'pipe'],
			env: this.#environment(),
		})
		closeSync(stdin)
		let output = ''
		const printed = Promise.withResolvers<void>()
		for (const stream of [child.stdout, child.stderr])
			stream?.on('data', (data: Buffer) => {
				output = (output + data.toString()).slice(-OUTPUT_LIMIT)
				printed.resolve()
			})
		const made: Child = {
			output: () => output,
			printed: printed.promise,
			ended: new Promise((resolve) => {
				child.on('close', (code) => resolve((made.code = code)))
			}),
			code: undefined,
			kill() {
				try {
					if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
				} catch {
					// It has already ended.
				}
			},
		}
		return made
	}

	#environment(): NodeJS.ProcessEnv {
		return {
			// Another gateway on this machine may use the default ports.
			SVC_PORT: '0',
			SVC_LEGACY_PORT: '0',
			PATH: `${join(this.#folder, 'bin')}:${dirname(process.execPath)}:${process.env.PATH}`,
			HOME: this.#folder,
			SVC_HOME: this.#place.home,
			NO_COLOR: '1',
			NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/compile'),
		}
	}

	/** Replaces the addresses of the page by this gateway's, and a placeholder such as SKILL_ID by the latest printed `skill_id`, or `id`. */
	async #filled(text: string): Promise<string> {
		const { url, legacyUrl, home } = this.#place
		// The page's own port and code come first: the values below may contain the same characters.
		let own = text
		if (own.includes(FIXED_PORT)) own = own.replaceAll(FIXED_PORT, String(await freePort()))
		if (own.includes(PAIRING_CODE)) own = own.replaceAll(PAIRING_CODE, await this.#bots.code())
		return own
			.replaceAll('http://127.0.0.1:3000', url)
			.replaceAll('http://127.0.0.1:17890', legacyUrl)
			.replaceAll(/(?<=^|[\s'"=])~\/\.svc\b/gm, home)
			.replaceAll(new RegExp(placeholder, 'g'), (name) => this.#newest(name) ?? name)
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

/** The first cell below a heading in the latest printed table. */
function cellUnder(heading: string, output: string): string | undefined {
	const lines = output.split('\n')
	const at = lines.findLastIndex((line) => line.includes(heading))
	const column = lines[at]?.indexOf(heading) ?? -1
	return column < 0 ? undefined : /^\S+/.exec(lines[at + 1]?.slice(column) ?? '')?.[0]
}

/** Splits a block before each line with a placeholder, since that may refer to the output of earlier lines of the block. */
function partsOf(text: string): string[] {
	const parts: string[] = []
	const part: string[] = []
	for (const line of text.split('\n')) {
		const isContinued = part.length === 0 || /(\\|\||&&)$/.test(part.at(-1) ?? '')
		if (!isContinued && placeholder.test(line) && !/^\s/.test(line)) parts.push(part.splice(0).join('\n'))
		part.push(line)
	}
	return [...parts, part.join('\n')]
}

const placeholder = /(?<![A-Z_$"{.])\b(?:[A-Z]+_ID|DIGEST|TOKEN|CODE)\b(?![A-Z_="])/

type CommandStep = Extract<Step, { kind: 'command' }>

/** How many times the questions are listed until there is one. */
const LIST_LIMIT = 30

/** The pairing code on all pages. */
const PAIRING_CODE = '7K3N9QXM'
/** The port of the channel that docs/writing-a-channel.md creates. */
const FIXED_PORT = '7007'

interface Child {
	output(): string
	/** Settles with its first output. */
	printed: Promise<void>
	ended: Promise<number | null>
	/** Undefined while it runs. */
	code: number | null | undefined
	kill(): void
}
