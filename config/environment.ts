import type { Problem } from './problems.ts'
import type { Environment } from './home.ts'

/** Settings of the file with those of the environment laid over them; `origins` says which paths these are. */
export interface Overlay {
	value: unknown
	/** Dotted path → variable. */
	origins: Map<string, string>
	problems: Problem[]
}

type Section = Record<string, unknown>

/**
 * The environment wins over the file. An empty variable counts as not set, as compose files make them; but not an empty
 * SVC_LOOPBACK: whether tokens are needed is not left to a guess.
 */
export function applyEnvironment(file: unknown, env: Environment): Overlay {
	const origins = new Map<string, string>()
	const problems: Problem[] = []
	const root = file ?? {}
	if (!isSection(root)) return { value: root, origins, problems }
	const value: Section = { ...root }

	const set = (
		section: string,
		key: string,
		variable: string,
		read: (text: string) => unknown = (text) => text,
	): void => {
		const text = env[variable]
		const before = value[section] ?? {}
		if (!text || !isSection(before)) return
		value[section] = { ...before, [key]: read(text) }
		origins.set(`${section}.${key}`, variable)
	}
	set('server', 'host', 'SVC_HOST')
	set('server', 'port', 'SVC_PORT', wholeNumber)
	set('legacy', 'port', 'SVC_LEGACY_PORT', wholeNumber)
	set('log', 'level', 'SVC_LOG_LEVEL')

	if (env.SVC_LOOPBACK !== undefined) {
		const mode = authMode(env.SVC_LOOPBACK)
		if (mode) {
			value.auth_mode = mode
			origins.set('auth_mode', 'SVC_LOOPBACK')
		} else {
			const message = 'must be 1, true, yes or on for loopback mode, or 0, false, no or off for token mode'
			problems.push({ path: 'auth_mode', message, where: { variable: 'SVC_LOOPBACK' } })
		}
	}
	addProviders(value, env, origins)
	return { value, origins, problems }
}

/** Where the file sets up no provider: the built-in one and, where there is a key for it, OpenAI as the default. */
function addProviders(value: Section, env: Environment, origins: Map<string, string>): void {
	const { providers = null } = value
	if (providers !== null && !(isSection(providers) && Object.keys(providers).length === 0)) return
	const offline = { kind: 'offline' }
	value.providers = { offline }
	if (!env.OPENAI_API_KEY) {
		value.default_provider ??= 'offline'
		return
	}
	const openai: Section = { kind: 'openai', api_key: env.OPENAI_API_KEY, model: env.OPENAI_MODEL || 'gpt-4o-mini' }
	if (env.OPENAI_BASE_URL) openai.base_url = env.OPENAI_BASE_URL
	value.providers = { openai, offline }
	value.default_provider ??= 'openai'
	origins.set('providers.openai.api_key', 'OPENAI_API_KEY')
	origins.set('providers.openai.model', 'OPENAI_MODEL')
	origins.set('providers.openai.base_url', 'OPENAI_BASE_URL')
}

function authMode(text: string): 'loopback' | 'token' | undefined {
	const word = text.trim().toLowerCase()
	if (['1', 'true', 'yes', 'on'].includes(word)) return 'loopback'
	if (['0', 'false', 'no', 'off'].includes(word)) return 'token'
	return undefined
}

/** A number where the text is one; otherwise the text, which the schema then refuses. */
function wholeNumber(text: string): unknown {
	return /^\d{1,15}$/.test(text) ? Number(text) : text
}

export function isSection(value: unknown): value is Section {
	return typeof value === 'object' && value !== null && !Array.isArray(value)
}
