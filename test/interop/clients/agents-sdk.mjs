import {
	Agent,
	OpenAIChatCompletionsModel,
	OpenAIResponsesModel,
	Runner,
	setTracingDisabled,
	tool,
} from '@openai/agents'
import OpenAI from 'openai'
import { city, equal, isCity, weatherTool, weatherArguments } from '../expected.mjs'

setTracingDisabled(true)
const chatModel = ({ url, token, agent }) =>
	new OpenAIChatCompletionsModel(new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 }), agent)
const responsesModel = ({ url, token, agent }) =>
	new OpenAIResponsesModel(new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 }), agent)
const run = (agent, prompt, options) => new Runner().run(agent, prompt, options)

export const name = '@openai/agents'
export const features = {
	async chat(at) {
		equal((await run(new Agent({ name: 'one', model: chatModel(at) }), 'say hello')).finalOutput, 'Hello!')
	},
	async stream(at) {
		const result = await run(new Agent({ name: 'one', model: chatModel(at) }), 'say hello', { stream: true })
		let text = ''
		for await (const piece of result.toTextStream()) text += piece
		equal(text, 'Hello!')
	},
	async tools(at) {
		const weather = tool({
			...weatherTool,
			parameters: weatherArguments,
			execute: async ({ city }) => `rain in ${city}`,
		})
		const agent = new Agent({ name: 'one', model: chatModel(at), tools: [weather] })
		equal((await run(agent, 'what is the weather')).finalOutput, 'It rains.')
	},
	async JSON(at) {
		for (const model of [chatModel(at), responsesModel(at)])
			isCity((await run(new Agent({ name: 'one', model, outputType: city }), 'name a city')).finalOutput)
	},
	async responses(at) {
		equal((await run(new Agent({ name: 'one', model: responsesModel(at) }), 'say hello')).finalOutput, 'Hello!')
	},
}
