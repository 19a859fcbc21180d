/** What checks share: each part is created on first use and released at the end. */
import { fileURLToPath } from 'node:url'
import { readConfig } from '../../host/config.ts'
import type { Config } from '../../host/config.ts'
import { within } from '../../util/deadline.ts'
import { isFault } from '../../errors.ts'
import { openRedactor } from '../../redactor/redactor.ts'
import { askingUntil } from './asking.ts'
import { doctorFiles } from './doctor-files.ts'
import { NotChecked, usualLimits } from './contract.ts'
import type { DoctorFile, DoctorLimits, CheckContext, Secrets } from './contract.ts'
import { findGateway } from './gateway.ts'
import { openStoreProcess } from './store-process.ts'
import type { StoreProcess } from './store-process.ts'

export interface CheckContextOptions {
	home: string
	env: Readonly<NodeJS.ProcessEnv>
	/** The folder of the program. Default: that of this file. */
	root?: string
	/** Default: `usualLimits`. */
	limits?: Partial<DoctorLimits>
}

export interface OpenCheckContext extends CheckContext, AsyncDisposable {
	/** The text to print: on one line, without the secrets that were read. */
	printable(text: string): string
}

export async function openCheckContext({
	home,
	env,
	root = programFolder,
	limits: changed,
}: CheckContextOptions): Promise<OpenCheckContext> {
	const limits = { ...usualLimits, ...changed }
	const files = await doctorFiles()
	const ended = new AbortController()
	const stack = new AsyncDisposableStack()
	const results = new Map<string, Promise<unknown>>()
	const redactor = openRedactor()
	const hide = (id: string, value: string | undefined, name = id): void =>
		void (value !== undefined && redactor.add('gateway', { id, name, value }))
	for (const { variables = {} } of [{ variables: ownVariables }, ...files])
		for (const [name, kind] of Object.entries(variables)) if (kind === 'secret') hide(name, env[name])
	const ask = askingUntil(ended.signal, limits.request)

	const once = <T>(key: string, make: () => Promise<T>): Promise<T> => {
		const before = results.get(key)
		if (before) return before as Promise<T>
		const promise = make()
		// Whoever awaits it gets the error. If nobody does, the error must not end the process.
		promise.catch(() => {})
		results.set(key, promise)
		return promise
	}
	const config = (): Promise<Config> =>
		once('config', async () => {
			try {
				const read = readConfig({ home, env })
				for (const { secretsIn } of files)
					for (const [name, value] of Object.entries(secretsIn?.(read) ?? {})) hide(name, value)
				return read
			} catch (error) {
				if (!isFault(error)) throw error
				throw new NotChecked('gateway.yaml is refused', 'fix what config.valid reports first')
			}
		})
	const ofSwitchedOn = async (): Promise<DoctorFile[]> => doctorFiles(await config())
	const storeProcess = (): Promise<StoreProcess | undefined> =>
		once('store process', async () => {
			const { path, url } = (await config()).store
			if (url !== null) return undefined // the data is on other servers
			const running = (await context.gateway()) !== null
			ended.signal.throwIfAborted()
			const opened = openStoreProcess({ path, running, env, withinMs: limits.store })
			return opened && stack.use(opened)
		})

	const context: OpenCheckContext = {
		home,
		env,
		root,
		limits,
		signal: ended.signal,
		once,
		config,
		storeVerdict: async () => (await storeProcess())?.verdict,
		gateway: () => once('gateway', () => findGateway({ home, env, ask })),
		store: () =>
			once('store', async () => {
				const process = await storeProcess()
				if (!process) return undefined
				const { damage, refused } = await process.verdict
				if (damage === null && refused === null) return process.store
				throw new NotChecked('the store cannot be read', 'fix what store.intact reports first')
			}),
		doctorFiles: ofSwitchedOn,
		experts: ofSwitchedOn,
		secrets: () =>
			once('secrets', async () => {
				const file = (await ofSwitchedOn()).find(({ secrets }) => secrets)
				const secrets = await file?.secrets?.(context)
				return secrets ? hiding(secrets, hide) : { find: async () => undefined }
			}),
		ask,
		printable(text) {
			const line = redactor
				.of(['gateway'])
				.text(text, 'log')
				.replace(/\s*\n\s*/g, '; ')
				.replace(/\p{Cc}/gu, '?')
			return line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line
		},
		async [Symbol.asyncDispose]() {
			ended.abort()
			await stack.disposeAsync()
			// Aborted work ends at once, except on a file system that hangs.
			await within(ENDING_MS, 'the rest', Promise.allSettled(results.values())).catch(() => {})
		},
	}
	return context
}

const ENDING_MS = 1_000
/** Characters of a message, which may quote a longer one. */
const LONGEST = 1_500
const ownVariables: DoctorFile['variables'] = { SVC_TOKEN: 'secret' }
const programFolder = fileURLToPath(new URL('../../..', import.meta.url))

function hiding(secrets: Secrets, hide: (id: string, value: string, name: string) => void): Secrets {
	return {
		async find(ref) {
			const found = await secrets.find(ref)
			// Labelled `secret` instead of with its name: someone may have written the key itself as the name.
			if (found?.value) hide(`secret ${ref}`, found.value, 'secret')
			return found
		},
	}
}
