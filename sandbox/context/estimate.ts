/** Estimates the tokens of a text from the kinds of its characters: rather too many than too few. */

/** In languages written with spaces, a token has about four characters; in others about one. */
export function tokensIn(text: string): number {
	let tokens = 0
	let word = 0
	let digits = 0
	const end = (): void => {
		if (word > 0) tokens += 1 + Math.floor((word - 1) / 5)
		if (digits > 0) tokens += Math.ceil(digits / 2)
		word = digits = 0
	}
	for (let at = 0; at < text.length; at++) {
		const code = text.charCodeAt(at)
		const lower = code | 0x20
		if (lower >= 0x61 && lower <= 0x7a) {
			if (digits > 0) end()
			word++
			continue
		}
		if (code >= 0x30 && code <= 0x39) {
			if (word > 0) end()
			digits++
			continue
		}
		end()
		if (code === 0x20) continue
		tokens += code < 0x80 ? 1 : code < 0x2e80 ? 0.7 : 1.4
	}
	end()
	return Math.ceil(Math.max(tokens, text.length / 4))
}

/** How much more than `tokensIn` the tokenizers of a family of models count. */
const FAMILIES: readonly (readonly [RegExp, number])[] = [
	[/claude/i, 1.2],
	[/gpt|^o\d|gemini/i, 1],
	[/llama|mistral|mixtral|qwen|deepseek|gemma|phi|command/i, 1.1],
]

/** The factor for the estimate until the provider has reported how many tokens it counts. */
export function familyFactor(model: string): number {
	return FAMILIES.find(([name]) => name.test(model))?.[1] ?? 1.1
}

/** Windows of well-known models, for orders without one. The first match applies. */
const WINDOWS: readonly (readonly [RegExp, number])[] = [
	[/gpt-5/i, 272_000],
	[/gpt-4\.1|gemini/i, 1_000_000],
	[/gpt-4o|gpt-4-turbo/i, 128_000],
	[/gpt-4/i, 8_192],
	[/gpt-3\.5/i, 16_385],
	[/claude|^o\d/i, 200_000],
	[/deepseek|qwen|mistral|llama-?[34]/i, 64_000],
]

/** The window of an unknown model. */
const WINDOW = 32_768

export function windowOf(model: string): number {
	return WINDOWS.find(([name]) => name.test(model))?.[1] ?? WINDOW
}
