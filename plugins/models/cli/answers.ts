/** The answers of `svc init` about a provider, and their conversion to a setting and to the options of a command. */
import { readConfig } from '../../../core/host/config.ts'
import { isFault } from '../../../core/errors.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { quoted } from '../../../core/util/quoted.ts'
import type { ServerKind } from '../dialects.ts'

/** The location of a provider's key. `value`: the typed key, which is sent only to the server and to the vault. */
export type KeyPlace =
	| { from: 'none' }
	| { from: 'env'; variable: string }
	| { from: 'vault'; secret: string; value?: string }

/** The answers so far. Absent ones must still be asked for. */
export interface Answers {
	kind?: ServerKind
	name?: string
	base_url?: string
	key?: KeyPlace
	model?: string
}

/** A provider as it is written to gateway.yaml. */
export interface WantedProvider {
	name: string
	settings: { kind: ServerKind; base_url: string; api_key?: string | { secret: string }; model: string }
}

export function wantedFrom({ kind, name, base_url, key, model }: Required<Answers>): WantedProvider {
	const stored = key.from === 'vault' ? { secret: key.secret } : undefined
	const api_key = key.from === 'env' ? `\${${key.variable}}` : stored
	return { name, settings: { kind, base_url, ...(api_key !== undefined && { api_key }), model } }
}

/** The schema's error about one answer; undefined if it is valid. Never repeats a key. */
export function problemWith(part: Answers, { home, env }: Pick<Cli, 'home' | 'env'>): string | undefined {
	const sample = {
		kind: 'openai',
		name: 'sample',
		base_url: 'http://sample/v1',
		key: { from: 'none' },
		model: 'sample',
	} as const
	const { name, settings } = wantedFrom({ ...sample, ...part })
	try {
		readConfig({ home, env, text: JSON.stringify({ providers: { [name]: settings } }) })
		return undefined
	} catch (error) {
		if (!isFault(error, 'config_invalid')) throw error
		return error.errors?.[0]?.message ?? error.message
	}
}

/** The command that continues with the remaining questions. Never contains a key. */
export function commandFor({ kind, name, base_url, key, model }: Answers): string {
	const options = [
		['--kind', kind],
		['--name', name],
		['--base-url', base_url],
		['--key-env', key?.from === 'env' ? key.variable : undefined],
		['--key-secret', key?.from === 'vault' ? key.secret : undefined],
		['--model', model],
	].flatMap(([option, value]) => (value === undefined ? [] : [option, quoted(value)]))
	return ['svc init', ...options].join(' ')
}
