import { createOpenAI } from '@ai-sdk/openai'
import { embedMany, generateObject, generateText, stepCountIs, streamText, tool } from 'ai'
import { city, equal, isCity, weatherTool, weatherArguments } from '../expected.mjs'

const open = ({ url, token }) => createOpenAI({ baseURL: `${url}/v1`, apiKey: token })
const common = { maxRetries: 0 }

export const name = 'ai'
export const features = {
	async chat(at) {
		const { text } = await generateText({ ...common, model: open(at).chat(at.agent), prompt: 'say hello' })
		equal(text, 'Hello!')
	},
	async stream(at) {
		const { textStream } = streamText({ ...common, model: open(at).chat(at.agent), prompt: 'say hello' })
		let text = ''
		for await (const piece of textStream) text += piece
		equal(text, 'Hello!')
	},
	async tools(at) {
		const weather = tool({
			description: weatherTool.description,
			inputSchema: weatherArguments,
			execute: async ({ city }) => `rain in ${city}`,
		})
		const { text } = await generateText({
			...common,
			model: open(at).chat(at.agent),
			prompt: 'what is the weather',
			tools: { weather },
			stopWhen: stepCountIs(3),
		})
		equal(text, 'It rains.')
	},
	async JSON(at) {
		const { object } = await generateObject({
			...common,
			model: open(at).chat(at.agent),
			schema: city,
			prompt: 'name a city',
		})
		isCity(object)
	},
	async responses(at) {
		const { text } = await generateText({ ...common, model: open(at).responses(at.agent), prompt: 'say hello' })
		equal(text, 'Hello!')
	},
	async embeddings(at) {
		const { embeddings } = await embedMany({
			...common,
			model: open(at).textEmbeddingModel(at.agent),
			values: ['one', 'two'],
		})
		equal(typeof embeddings[1][0], 'number')
	},
	async errors(at) {
		// With its default of two retries, each of which would start another run.
		const before = await at.failures()
		const refused = { prompt: 'be refused', onError() {} }
		await streamText({ ...refused, model: open(at).responses(at.agent) }).consumeStream()
		await streamText({ ...refused, model: open(at).chat(at.agent) }).consumeStream()
		const error = await generateText({ ...refused, model: open(at).chat(at.agent) }).catch((reason) => reason)
		equal(error.message.includes('The request is invalid.'), true)
		equal(await at.failures(), before + 3)
	},
}
