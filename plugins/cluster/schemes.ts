/** URL schemes of NATS servers: unencrypted and encrypted. */
export const schemes: readonly string[] = ['nats', 'tls']
