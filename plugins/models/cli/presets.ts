/** What is known of a server before its operator says more. */
export interface Preset {
	label: string
	name?: string
	base_url?: string
	/** The usual location of its key. */
	variable: string
	/** It accepts calls without a key. */
	isOpen: boolean
	/** An example of a model. */
	model: string
}

export const presets = {
	openai: {
		label: 'OpenAI',
		name: 'openai',
		base_url: 'https://api.openai.com/v1',
		variable: 'OPENAI_API_KEY',
		isOpen: false,
		model: 'gpt-4o-mini',
	},
	ollama: {
		label: 'Ollama on this machine',
		name: 'ollama',
		base_url: 'http://127.0.0.1:11434/v1',
		variable: 'OLLAMA_API_KEY',
		isOpen: true,
		model: 'qwen3',
	},
	other: {
		label: "Another server with OpenAI's API",
		variable: 'MODELS_API_KEY',
		isOpen: false,
		model: 'qwen3',
	},
} satisfies Record<string, Preset>
