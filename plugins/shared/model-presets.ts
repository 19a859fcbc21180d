/** The model servers that `svc init` and the console offer for a new provider. */
import { serverUrls } from '../../sandbox/provider-kinds.ts'
import type { ServerKind } from '../../sandbox/provider-kinds.ts'

/** Default settings of a server. */
export interface Preset {
	label: string
	kind: ServerKind
	name?: string
	base_url?: string
	/** The usual environment variable of its key. */
	variable: string
	/** It accepts calls without a key. */
	isOpen: boolean
	/** An example of a model. */
	model: string
}

export const presets = {
	openai: {
		label: 'OpenAI',
		kind: 'openai-responses',
		name: 'openai',
		base_url: serverUrls['openai-responses'],
		variable: 'OPENAI_API_KEY',
		isOpen: false,
		model: 'gpt-4o-mini',
	},
	anthropic: {
		label: 'Anthropic',
		kind: 'anthropic',
		name: 'anthropic',
		base_url: serverUrls.anthropic,
		variable: 'ANTHROPIC_API_KEY',
		isOpen: false,
		model: 'claude-sonnet-4-5',
	},
	google: {
		label: 'Google Gemini',
		kind: 'google',
		name: 'google',
		base_url: serverUrls.google,
		variable: 'GEMINI_API_KEY',
		isOpen: false,
		model: 'gemini-2.5-flash',
	},
	ollama: {
		label: 'Ollama on this machine',
		kind: 'ollama',
		name: 'ollama',
		base_url: serverUrls.ollama,
		variable: 'OLLAMA_API_KEY',
		isOpen: true,
		model: 'qwen3',
	},
	openrouter: {
		label: 'OpenRouter',
		kind: 'openai',
		name: 'openrouter',
		base_url: 'https://openrouter.ai/api/v1',
		variable: 'OPENROUTER_API_KEY',
		isOpen: false,
		model: 'openai/gpt-4o-mini',
	},
	other: {
		label: "Another server with OpenAI's API",
		kind: 'openai',
		variable: 'MODELS_API_KEY',
		isOpen: false,
		model: 'qwen3',
	},
} satisfies Record<string, Preset>

/** The preset for a kind and an address: for kind `openai` with another address, `other`. */
export function presetOf(kind: ServerKind, base_url: string | undefined): Preset {
	const all = Object.values<Preset>(presets)
	if (kind === 'openai') return base_url === presets.openai.base_url ? { ...presets.openai, kind } : presets.other
	return all.find((one) => one.kind === kind) ?? presets.other
}
