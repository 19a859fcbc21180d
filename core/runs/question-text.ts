import type { QuestionText } from './tool.ts'

/** A question with its options, as text. */
export function questionText({ question, options = [] }: QuestionText): string {
	return [question, ...options.map((option) => `- ${option}`)].join('\n')
}

/** The text of a sub-agent's question, for the person who talks to a parent agent. */
export function questionBelow(text: string): string {
	return `A sub-agent asks:\n\n${text}`
}
