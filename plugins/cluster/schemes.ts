/** Of the addresses of NATS servers: connections in plain text, and encrypted ones. */
export const schemes: readonly string[] = ['nats', 'tls']
